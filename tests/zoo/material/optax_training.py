# %% [markdown]
# needs: optax, jax

# %%
import optax, jax, jax.numpy as jnp
params = {"w": jnp.array([1.0, -2.0]), "b": jnp.array(0.5)}
opt = optax.adam(optax.exponential_decay(0.1, 10, 0.5))
state = opt.init(params)
print(type(state[0]).__name__, state[0].count)

# %%
loss = lambda p: (p["w"] ** 2).sum() + p["b"] ** 2
def step(params, state):
    updates, state = opt.update(jax.grad(loss)(params), state, params)
    return optax.apply_updates(params, updates), state
params, state = step(params, state)
print(params["w"].round(4), state[0].count)

# %%
for _ in range(3):
    params, state = step(params, state)
print(params["b"].round(4), state[0].count)

# %%
chain = optax.chain(optax.clip_by_global_norm(1.0), optax.masked(optax.sgd(0.1), {"w": True, "b": False}))
cs = chain.init(params)
print(jax.tree.structure(cs).num_leaves)

# %%
u, cs = chain.update(jax.grad(loss)(params), cs, params)
print(u["w"].round(4), isinstance(cs[0], optax.EmptyState))
