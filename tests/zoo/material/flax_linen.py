# %% [markdown]
# needs: flax, jax

# %%
import flax.linen as nn, jax, jax.numpy as jnp
from flax.core import freeze
class MLP(nn.Module):
    width: int
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(self.width)(x)))
model = MLP(4)
print(model.width)

# %%
variables = model.init(jax.random.key(0), jnp.ones((1, 2)))
print(jax.tree.map(jnp.shape, variables))

# %%
out = model.apply(variables, jnp.ones((3, 2)))
frozen = freeze(variables)
print(out.shape, type(frozen).__name__)

# %%
variables["params"]["Dense_1"]["bias"] += 2
bound = model.bind(variables)
print((model.apply(variables, jnp.ones((3, 2))) - out)[0])

# %%
print(model.clone(width=8).width, model == MLP(4), bound(jnp.zeros((1, 2)))[0])
