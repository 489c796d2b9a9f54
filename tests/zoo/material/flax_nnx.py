# %% [markdown]
# needs: flax, jax

# %%
from flax import nnx
import jax, jax.numpy as jnp
rngs = nnx.Rngs(0)
model = nnx.Sequential(nnx.Linear(2, 3, rngs=rngs), nnx.relu, nnx.Linear(3, 1, rngs=rngs))
first = model.layers[0]
print(model(jnp.ones((1, 2))).shape, first.kernel.shape)

# %%
class Count(nnx.Variable):
    pass
class Net(nnx.Module):
    def __init__(self, inner):
        self.inner = inner
        self.calls = Count(jnp.array(0))
    def __call__(self, x):
        self.calls.value += 1
        return self.inner(x)
net = Net(model)
net(jnp.ones((1, 2)))
print(net.inner is model, net.calls.value)

# %%
net(jnp.ones((1, 2)))
first.bias.value = first.bias.value + 5
print(net.calls.value, model.layers[0].bias.value)

# %%
graph, state = nnx.split(net)
again = nnx.merge(graph, state)
print(again.calls.value, type(again) is Net)

# %%
print(len(jax.tree.leaves(nnx.state(net, Count))), net.inner.layers[0] is first)
