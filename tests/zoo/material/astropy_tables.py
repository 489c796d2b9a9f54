# %% [markdown]
# needs: astropy

# %%
import astropy.units as u, numpy as np
a = np.arange(6.0) * u.m
b = a[1:3]
p = a.value
v = a.view(np.ndarray)

# %%
b[0] = 9 * u.m
a, b, p, v

# %%
a[2] = 7 * u.m
a, b, p, v

# %%
p[1] = 5
a, b, p

# %%
c = a.reshape(2, 3); d = c.T

# %%
d[0, 0] = 100 * u.m
a, c, d.unit is u.m

# %%
a *= 2
b, c, d, p

# %%
from astropy.table import QTable, Table
t = QTable({'x': np.arange(3.0) * u.km, 'n': [1, 2, 3]})
x = t['x']; n = t['n']; r = t[1]

# %%
x[0] = 5 * u.km
n[1] = 77
t, r['n']

# %%
t['x'][1] = 6 * u.km
r['n'] = 5
x, n, t

# %%
m = Table({'a': [1, 2, 3]}, masked=True)
col = m['a']; col.mask[1] = True

# %%
m['a'][0] = 9
col, col.info.name, col.parent_table is m

# %%
col[2] = 4
m, col.mask
