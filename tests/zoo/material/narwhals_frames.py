# %% [markdown]
# needs: narwhals, pandas

# %%
import narwhals as nw, pandas as pd
native = pd.DataFrame({"a": [1, 2, 3], "b": [4.0, 5, 6]})
frame = nw.from_native(native)
print(frame.columns, frame.to_native() is native)

# %%
native.loc[0, "a"] = 50
print(frame["a"].to_list(), frame.to_native() is native)

# %%
@nw.narwhalify
def double(df):
    return df.with_columns(nw.col("a") * 2)
out = double(native)
print(type(out).__name__, out["a"].tolist())

# %%
lazy = frame.lazy().filter(nw.col("b") > 4.5)
print(lazy.collect().shape, frame.implementation)

# %%
print(double(out)["a"].tolist(), lazy.collect()["a"].to_list(), nw.col("a").mean())
