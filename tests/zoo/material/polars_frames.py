# %% [markdown]
# needs: polars

# %%
import polars as pl
pl.Config.set_tbl_rows(3)
df = pl.DataFrame({"k": ["a", "b", "a", "c"], "v": [1, 2, 3, 4]})
same = df
df

# %%
lazy = df.lazy().group_by("k").agg(pl.col("v").sum()).sort("k")
print(lazy.collect().to_dicts(), same is df)

# %%
df[0, "v"] = 100
series = df["v"]
print(same["v"].to_list(), lazy.collect().rows())

# %%
@pl.api.register_dataframe_namespace("twice")
class Twice:
    def __init__(self, frame):
        self.frame = frame
    def v(self):
        return self.frame.with_columns(pl.col("v") * 2)
print(df.twice.v()["v"].to_list())

# %%
df.insert_column(0, pl.Series("n", [9, 8, 7, 6]))
print(df.twice.v()["v"].to_list(), same.columns, series.to_list(), pl.Config.state()["POLARS_FMT_MAX_ROWS"])

# %%
# raises: ColumnNotFoundError
expr = pl.when(pl.col("v") > 50).then(pl.lit("big")).otherwise(pl.lit("small")).alias("size")
print(same.select(expr)["size"].to_list(), df.select("missing"))
