# %% [markdown]
# needs: xarray, numpy

# %%
import xarray as xr, numpy as np
xr.set_options(display_width=60)
da = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("t", "x"), coords={"x": list("abc")}, name="v", attrs={"u": "K"})
ds = da.to_dataset()
print(da.sel(x="b").values, ds["v"].attrs)

# %%
da.loc[{"x": "a"}] = -1
ds["w"] = ("t", [10, 20])
print(ds.v.values.tolist(), list(ds.data_vars))

# %%
@xr.register_dataset_accessor("zoo")
class Zoo:
    def __init__(self, ds):
        self.ds, self.calls = ds, 0
    def total(self):
        self.calls += 1
        return float(self.ds.v.sum()), self.calls
print(ds.zoo.total())

# %%
print(ds.zoo.total(), ds.groupby("x").mean().v.shape)

# %%
ds.coords["t"] = [1, 2]
ds.attrs["title"] = "z"
view = ds.v.isel(t=0)
view[0] = 99
print(ds.v.values[0], xr.get_options()["display_width"], ds.zoo.total())

# %%
# raises: KeyError
ds.sel(x="q")
