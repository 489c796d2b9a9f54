# %% [markdown]
# needs: numba, numpy

# %%
import numpy as np
from numba import njit, int64, float64
from numba.typed import Dict
from numba.core import types
d = Dict.empty(types.unicode_type, types.int64)
d["a"] = 1
print(d)

# %%
d["b"] = 2
@njit
def grow(x):
    for k in x:
        x[k] += 10
grow(d)
print(dict(d))

# %%
from numba.experimental import jitclass
@jitclass([("n", int64), ("v", float64[:])])
class Bag:
    def __init__(self, n):
        self.n = n
        self.v = np.zeros(n)
b = Bag(3)
b.v[1] = 5
print(b.n, b.v)

# %%
b.n += 1
print(b.n, b.v.sum())

# %%
print(dict(d), b.v)
