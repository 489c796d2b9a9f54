# %% [markdown]
# needs: altair, pandas

# %%
import altair as alt, pandas as pd
df = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
chart = alt.Chart(df).mark_bar().encode(x="a:Q", y="b")
print(chart.to_dict()["mark"], chart.data is df)

# %%
chart.title = "T"
df.loc[0, "a"] = 50
print(list(chart.to_dict()["datasets"].values())[0][0], chart.title)

# %%
both = chart | chart.mark_line()
alt.data_transformers.enable("default", max_rows=1)
print(len(both.hconcat))

# %%
brush = alt.selection_interval(name="brush")
c2 = chart.add_params(brush)
print(c2.params[0].name, alt.data_transformers.active)

# %%
both.hconcat[0].title = "left"
print(both.hconcat[0].title, chart.title, both.hconcat[0] is chart)

# %%
# raises: MaxRowsError
chart.to_dict()
