# %% [markdown]
# needs: einops, numpy

# %%
import numpy as np
from einops import rearrange, reduce, repeat, pack, unpack, parse_shape
x = np.arange(24).reshape(2, 3, 4)
y = rearrange(x, "a b c -> (a b) c")
print(y.shape, np.shares_memory(x, y))

# %%
y[0, 0] = 100
print(x[0, 0, 0], reduce(x, "a b c -> a", "max"))

# %%
z, shapes = pack([x, x[:, :, 0]], "a * ") if False else pack([x.reshape(2, -1), x[:, :, 0]], "a *")
print(z.shape, shapes)

# %%
u = unpack(z, shapes, "a *")
u[0][0, 0] = -1
print(z[0, 0], parse_shape(x, "a b _"))

# %%
# raises: EinopsError
rearrange(x, "a b -> b a")
