# %% [markdown]
# needs: unyt

# %%
import unyt as u, numpy as np
a = u.unyt_array(np.arange(6.0), 'm')
b = a[1:3]
p = a.view(np.ndarray)

# %%
b[0] = 9 * u.m
a, b, p

# %%
a[2] = 7 * u.m
a, b, p

# %%
p[1] = 5
a, b, p

# %%
c = a.reshape(2, 3); d = c.T
raw = a.d

# %%
d[0, 0] = 100 * u.m
a, c, raw

# %%
a *= 2
b, c, d, p, raw

# %%
a.convert_to_units('cm'); a, b
