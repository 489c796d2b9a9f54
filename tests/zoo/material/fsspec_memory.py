# %% [markdown]
# needs: fsspec

# %%
import fsspec
fs = fsspec.filesystem("memory")
with fs.open("/zoo/a.txt", "w") as f:
    f.write("hello")
print(fs.cat("/zoo/a.txt"), fsspec.filesystem("memory") is fs)

# %%
fs.pipe("/zoo/b.txt", b"two")
print(sorted(fs.ls("/zoo", detail=False)))

# %%
mapper = fs.get_mapper("/zoo")
mapper["c"] = b"3"
print(sorted(mapper), fs is mapper.fs)

# %%
fs.rm("/zoo/a.txt")
print(sorted(fs.ls("/zoo", detail=False)), fs.exists("/zoo/c"))

# %%
of = fsspec.open("memory://zoo/b.txt")
print(of.path, sorted(mapper), fsspec.filesystem("memory") is fs)

# %%
# raises: FileNotFoundError
fs.cat("/none")
