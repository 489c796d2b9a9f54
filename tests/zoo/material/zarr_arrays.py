# %% [markdown]
# needs: zarr, numpy

# %%
import zarr, numpy as np
store = zarr.storage.MemoryStore()
root = zarr.group(store=store)
z = root.create_array("a", shape=(6, 4), chunks=(3, 2), dtype="i4")
z[:] = np.arange(24).reshape(6, 4)
print(z.shape, z[1, 2], z.nchunks)

# %%
z[0, :] = 7
print(z[0].tolist(), z.attrs.asdict())

# %%
z.attrs["unit"] = "m"
root.attrs["title"] = "t"
print(dict(z.attrs), root.attrs["title"])

# %%
sub = root.create_group("sub")
b = sub.create_array("b", shape=(3,), dtype="f8")
b[:] = [1, 2, 3]
print(sorted(root.group_keys()), b[:].sum())

# %%
print(root["sub/b"][:].tolist(), z.resize((8, 4)), z.shape)

# %%
z.append(np.ones((1, 4), "i4"))
print(z.shape, z[-1].tolist(), root["a"].shape)

# %%
print(z.oindex[[0, 2], [1, 3]].tolist(), z.get_mask_selection(z[:] == 7).tolist())

# %%
d = zarr.open_group("d.zarr", mode="w")
x = d.create_array("x", data=np.linspace(0, 1, 5))
print(x[:].round(2).tolist())

# %%
x[2] = 9
print(zarr.open_array("d.zarr/x", mode="r")[2], d.store == x.store)

# %%
with zarr.config.set({"array.order": "F"}):
    print(zarr.zeros((2, 2)).order)
print(zarr.config.get("array.order"))

# %%
zarr.config.set({"array.write_empty_chunks": True})
print(zarr.config.get("array.write_empty_chunks"))

# %%
print(zarr.config.get("array.write_empty_chunks"), z.info_complete().__class__.__name__)
