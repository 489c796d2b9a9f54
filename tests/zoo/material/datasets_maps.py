# %% [markdown]
# needs: datasets

# %%
from datasets import Dataset, DatasetDict, Features, Value, ClassLabel, disable_progress_bars
disable_progress_bars()
ds = Dataset.from_dict({"x": [1, 2, 3, 4], "y": ["a", "b", "a", "b"]})
print(ds, ds[0])

# %%
ds2 = ds.map(lambda r: {"z": r["x"] * 2}, keep_in_memory=True, load_from_cache_file=False)
parts = DatasetDict(train=ds2, test=ds)
print(ds2["z"][:], parts["test"] is ds)

# %%
ds2.set_format("numpy", columns=["z"])
chosen = ds2.filter(lambda r: r["z"] > 4, keep_in_memory=True, load_from_cache_file=False)
print(type(ds2[0]["z"]).__name__, len(chosen))

# %%
print(parts["train"].format["type"], parts["train"] is ds2)
cast = ds.cast_column("y", ClassLabel(names=["a", "b"]))
print(cast[1], cast.features["y"].names)

# %%
ds2.reset_format()
shuffled = ds.shuffle(seed=1, keep_in_memory=True)
print(shuffled["x"][:], ds2.column_names, parts["train"][0])
