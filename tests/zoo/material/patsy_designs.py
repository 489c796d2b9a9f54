# %% [markdown]
# needs: patsy, numpy

# %%
import patsy, numpy as np
data = {"x": [1.0, 2, 3, 4], "g": ["a", "b", "a", "c"]}
m = patsy.dmatrix("C(g) + center(x)", data)
info = m.design_info
print(m.shape, info.column_names)

# %%
print(patsy.build_design_matrices([info], {"x": [10.0], "g": ["c"]})[0])

# %%
class Root:
    def __init__(self):
        self.n = 0
    def memorize_chunk(self, x):
        self.n += len(x)
    def memorize_finish(self):
        pass
    def transform(self, x):
        return np.sqrt(x) / self.n
root = patsy.stateful_transform(Root)
r = patsy.dmatrix("root(x) - 1", data)
print(np.asarray(r).ravel().round(3))

# %%
print(patsy.build_design_matrices([r.design_info], {"x": [9.0]})[0][0, 0], info.slice("C(g)"))

# %%
# raises: PatsyError
patsy.dmatrix("nope", data)
