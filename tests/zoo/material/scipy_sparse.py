# %% [markdown]
# needs: scipy, numpy

# %%
import numpy as np
from scipy import sparse, optimize
m = sparse.lil_matrix((4, 4))
m.setdiag([1.0, 2, 3, 4])
held = [m]
print(m.nnz)

# %%
m[0, 3] = 9
c = m.tocsr()
print(held[0] is m, held[0][0, 3], c.has_sorted_indices)

# %%
c.data *= 2
c[1, 1] = 7
lu = sparse.linalg.splu(c.tocsc()) if hasattr(sparse, "linalg") else None
print(c.toarray(), lu is None)

# %%
def cost(p, calls=[]):
    calls.append(1)
    return (p[0] - 3) ** 2 + (p[1] + 1) ** 2
found = optimize.minimize(cost, [0.0, 0.0], method="Nelder-Mead")
print(found.x.round(3), len(cost.__defaults__[0]) > 5)

# %%
n = len(cost.__defaults__[0])
found.note = "ok"
cost([3, -1])
print(found.success, len(cost.__defaults__[0]) - n, type(found).__name__)

# %%
print(found.note, c.sum(), m.sum(), found["x"] is found.x)
