# %% [markdown]
# needs: autograd

# %%
import autograd.numpy as np
from autograd import grad, elementwise_grad, jacobian
from autograd.extend import primitive, defvjp
def f(x): return np.sin(x) * x ** 2
g = grad(f)
print(round(float(g(1.0)), 5))

# %%
print(round(float(grad(g)(1.0)), 5), elementwise_grad(f)(np.array([0.0, 1.0])).round(4).tolist())

# %%
@primitive
def logsum(x):
    return np.log(np.sum(np.exp(x)))
def make(ans, x):
    return lambda gr: gr * np.exp(x - ans)
defvjp(logsum, make)
print(grad(logsum)(np.array([1.0, 1.0])).tolist())

# %%
print(grad(lambda x: logsum(x * 2) * 3)(np.array([1.0, 1.0])).tolist())

# %%
@primitive
def cube(x): return x ** 3
print(cube(2.0))

# %%
defvjp(cube, lambda ans, x: lambda gr: gr * 3 * x ** 2)
print(grad(cube)(2.0))

# %%
print(grad(cube)(3.0), grad(lambda d: d["a"] ** 2 + d["b"][0])({"a": 2.0, "b": [1.0]}))

# %%
j = jacobian(lambda x: np.outer(x, x).ravel())(np.array([1.0, 2.0]))
print(j.tolist())

# %%
from autograd.misc.optimizers import adam
trail = []
print(adam(grad(lambda x, i: (x - 3) ** 2), 0.0, callback=lambda x, i, g: trail.append(round(float(x), 3)), num_iters=3).round(4), trail)

# %%
print(len(trail), round(float(g(2.0)), 4), np.array([1.0]) is np)
