# %% [markdown]
# needs: numba, numpy

# %%
import numba, numpy as np
from numba import njit, vectorize
scale = 3
@njit
def total(a):
    s = 0.0
    for v in a:
        s += v * scale
    return s
print(total(np.arange(4.0)))

# %%
@njit
def twice(a):
    return total(a) * 2
print(twice(np.ones(3)), len(total.signatures))

# %%
@vectorize(["float64(float64)"])
def half(x):
    return x / 2
print(half(np.arange(3.0)), twice.py_func(np.ones(2)))

# %%
scale = 4
weights = numba.typeof(np.ones(1))
print(weights, total(np.ones(2)), half(np.ones(1)))

# %%
print(total.py_func(np.ones(2)), len(total.signatures), twice(np.ones(1)))
