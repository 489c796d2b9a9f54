# %% [markdown]
# needs: jax

# %%
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
key = jax.random.key(0)
x = jnp.arange(4.0)
held = {"x": x}
print(x.dtype, jax.random.normal(key, (2,)).round(4))

# %%
key, sub = jax.random.split(key)
y = x.at[1].set(9)
print(held["x"] is x, y, jax.random.uniform(sub).round(4))

# %%
@jax.jit
def f(a):
    return (a ** 2).sum()
grad = jax.grad(f)
print(f(y), grad(y))

# %%
tree = {"w": y, "b": (x, None)}
leaves, shape = jax.tree.flatten(tree)
print(shape, jax.tree.unflatten(shape, leaves)["b"][0] is x)

# %%
doubled = jax.tree.map(lambda a: a * 2, tree)
print(grad(doubled["w"]), jax.config.jax_enable_x64, f(x))

# %%
# raises: TypeError
f(jnp.ones(3), 2)
