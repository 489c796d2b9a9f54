# %% [markdown]
# needs: numexpr, numpy

# %%
import numexpr as ne, numpy as np
a = np.arange(5.0)
b = a[::-1]
print(ne.evaluate("a * 2 + b"))

# %%
ne.set_num_threads(1)
a[0] = 10
print(ne.evaluate("sum(a)"), b[-1])

# %%
f = ne.NumExpr("x ** 2 + y", signature=[("x", np.double), ("y", np.double)])
print(f(a, b))

# %%
print(f(b, a), f.input_names)

# %%
# raises: KeyError
ne.evaluate("a + missing")
