# %% [markdown]
# needs: jax

# %%
import jax, jax.numpy as jnp
from dataclasses import dataclass
@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
    def tree_flatten(self):
        return (self.a, self.b), None
    @classmethod
    def tree_unflatten(cls, aux, kids):
        return cls(*kids)
p = Pair(jnp.ones(2), 3.0)
print(jax.tree.leaves(p))

# %%
q = jax.tree.map(lambda v: v + 1, p)
print(q.a, q.b, isinstance(q, Pair))

# %%
p.b = jnp.zeros(2)
step = jax.jit(lambda t: Pair(t.a * 2, t.b - 1))
print(step(p).b)

# %%
@jax.tree_util.register_dataclass
@dataclass
class Point:
    x: jax.Array
    y: jax.Array
print(jax.vmap(lambda t: t.x + t.y)(Point(jnp.arange(3), jnp.ones(3))), step(q).a)

# %%
pt = Point(jnp.ones(1), p.a)
print(jax.tree.structure(pt).num_leaves, pt.y is p.a, jax.tree.map(jnp.sum, pt).y)
