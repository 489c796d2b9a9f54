# %% [markdown]
# needs: pandas

# %%
import pandas as pd
s = pd.Series([3, None, 1], index=list("abc"), name="count", dtype="Int64")
parts = [s, s.index, s.array]
print(s.isna().sum(), parts[1] is s.index)

# %%
s["b"] = 5
alias = s
print(s.sum(), parts[0] is s)

# %%
alias.rename("total", inplace=True)
many = pd.MultiIndex.from_product([["x", "y"], [1, 2]], names=["k", "n"])
table = pd.Series(range(4), index=many).unstack()
print(s.name, table)

# %%
table.loc["y", 2] = 99
intervals = pd.cut([1, 5, 9], bins=[0, 3, 6, 10])
print(intervals, intervals.categories.closed, table.to_dict())

# %%
writer = table.style.format("{:.1f}").set_caption("T")
print("99.0" in writer.to_html(), alias is s, s.tolist())
