# %% [markdown]
# # Bike counts per hour

# %%
import numpy as np
import pandas as pd
from datetime import datetime, timedelta

# %%
rng = np.random.default_rng(0)
index = pd.date_range("2024-03-01", periods=24 * 14, freq="h")
base = 50 + 30 * np.sin(2 * np.pi * (index.hour - 6) / 24)
counts = pd.Series(rng.poisson(base), index=index, name="bikes")
counts.head()

# %%
index.freq, counts.index is index

# %%
daily = counts.resample("D").sum()
daily

# %%
daily.rolling(3).mean().round(1).tail(4)

# %%
counts.iloc[10:14] = np.nan if False else 0
missing = counts.astype(float)
missing[missing == 0] = np.nan
missing.isna().sum()

# %%
filled = missing.interpolate()
filled.iloc[8:16].round(1)

# %%
df = counts.to_frame()
df["hour"] = df.index.hour
df["weekday"] = df.index.day_name()
df["weekend"] = df.index.dayofweek >= 5
df.sample(3, random_state=1)

# %%
profile = df.groupby(["weekend", "hour"])["bikes"].mean().unstack(0)
profile.round(1).head()

# %%
rush = profile.idxmax()
rush

# %%
df["lag24"] = df["bikes"].shift(24)
df["diff"] = df["bikes"] - df["lag24"]
df["diff"].describe().round(2)

# %%
local = counts.tz_localize("UTC").tz_convert("Europe/Berlin")
local.index[0], local.index.tz

# %%
week = df.loc["2024-03-04":"2024-03-05", ["bikes"]]
week *= 2
print(week["bikes"].sum(), df.loc["2024-03-04":"2024-03-05", "bikes"].sum())

# %%
events = pd.DataFrame({
    "when": [datetime(2024, 3, 2, 10), datetime(2024, 3, 9, 18, 30)],
    "what": ["market", "concert"],
})
events["until"] = events["when"] + timedelta(hours=3)
events.dtypes

# %%
near = pd.merge_asof(df.reset_index(), events.sort_values("when"), left_on="index", right_on="when",
                     tolerance=pd.Timedelta("3h"))
near["what"].value_counts()

# %%
monthly = daily.to_period("W")
monthly.groupby(level=0).sum()

# %%
groups = df.groupby("weekday")
sizes = {}
for day, part in groups:
    sizes[day] = len(part)
sizes

# %%
ewm = counts.ewm(span=6).mean()
corr = df[["bikes", "hour", "lag24"]].corr().round(3)
corr

# %%
# raises: ValueError
counts.index.freq = "D"

# %%
counts.loc["2024-03-20 00:00"] = 1
counts.index.freq, len(counts), len(index), len(df)

# %%
pd.Timestamp("2024-02-28") + pd.offsets.MonthEnd(), pd.bdate_range("2024-03-01", periods=3).tolist()
