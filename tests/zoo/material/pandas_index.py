# %% [markdown]
# needs: pandas, numpy

# %%
import pandas as pd, numpy as np
pd.options.display.precision = 2
frame = pd.DataFrame({"city": ["Oslo", "Rome", "Oslo", "Bonn"], "t": [1.5, 20.25, -3.125, 9.0]})
frame.attrs["source"] = "station"
frame["city"] = frame["city"].astype("category")
groups = frame.groupby("city", observed=True)
frame

# %%
class Weather(pd.DataFrame):
    _metadata = ["unit"]
    @property
    def _constructor(self):
        return Weather
w = Weather(frame)
w.unit = "C"
print(type(w[w.t > 0]).__name__, w.unit, groups.t.mean().to_dict())

# %%
frame.loc[frame.city == "Oslo", "t"] += 100
print(groups.t.sum().to_dict(), w.t.tolist(), frame.attrs)

# %%
@pd.api.extensions.register_dataframe_accessor("hot")
class Hot:
    def __init__(self, data):
        self.data = data
    def rows(self, limit):
        return self.data[self.data.t > limit]
print(frame.hot.rows(50))

# %%
times = pd.date_range("2024-03-30", periods=4, freq="12h", tz="Europe/Oslo")
frame.index = times
rolling = frame.t.rolling(2)
print(frame.hot.rows(50).index[0], rolling.mean().tolist(), w.unit)

# %%
frame.insert(0, "new", range(4))
print(frame.columns.tolist(), frame.index is times, frame.index.freqstr, pd.options.display.precision, rolling.sum().tolist())
