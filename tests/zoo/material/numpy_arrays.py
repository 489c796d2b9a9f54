# %% [markdown]
# needs: numpy

# %%
import numpy as np
np.set_printoptions(precision=3, suppress=True)
rng = np.random.default_rng(7)
grid = rng.normal(size=(4, 5))
edge = grid[0]
both = {"grid": grid, "edge": edge}
print(grid[:2])

# %%
edge *= 10
both["grid"][1:, 0] = -1
print(grid.sum(axis=0), both["edge"] is edge, np.shares_memory(grid, edge))

# %%
class Signal(np.ndarray):
    def __new__(cls, data, rate):
        self = np.asarray(data).view(cls)
        self.rate = rate
        return self
    def __array_finalize__(self, other):
        self.rate = getattr(other, "rate", None)
signal = Signal(np.sin(np.arange(6)), 10)
print(type(signal).__name__, signal.rate, signal[::2].rate)

# %%
signal[0] = 5
records = np.array([(1, 2.5, "a"), (2, 3.5, "b")], dtype=[("n", "i4"), ("x", "f8"), ("s", "U3")])
records["x"] += rng.random(2)
print(signal, isinstance(signal, Signal), records)

# %%
# raises: FloatingPointError
np.seterr(divide="raise")
masked = np.ma.masked_less(grid, 0)
print(masked.count(), np.get_printoptions()["precision"])
np.ones(2) / np.zeros(2)

# %%
masked[0, 0] = np.ma.masked
print(masked.mask.sum(), rng.integers(100, size=3), edge.base is grid, signal.rate, np.geterr()["divide"])
