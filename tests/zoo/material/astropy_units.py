# %% [markdown]
# needs: astropy, numpy

# %%
from astropy import units as u, constants as const
import numpy as np
d = [1, 2, 3] * u.km
first = d[0]
print(d.to(u.m), d.unit is u.km)

# %%
d[0] = 5000 * u.m
smoot = u.def_unit("smoot", 1.7 * u.m)
print(d, (3 * smoot).to(u.cm), first)

# %%
from astropy.table import QTable
t = QTable({"a": [1, 2] * u.s, "n": ["x", "y"]}, meta={"by": "me"})
t["a"][0] = 10 * u.s
print(t, t["a"].unit is u.s)

# %%
t.add_column([1.5, 2.5] * smoot, name="len")
t["n"].info.description = "names"
print(t["len"].to(u.m), t.colnames, const.c.unit)

# %%
with u.set_enabled_equivalencies(u.spectral()):
    print((500 * u.nm).to(u.THz))
print(t["n"].info.description, t[1]["len"].unit is smoot)

# %%
# raises: UnitConversionError
(1 * u.km).to(u.s)
