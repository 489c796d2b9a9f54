# %% [markdown]
# needs: frozendict, immutables

# %%
from frozendict import frozendict
import immutables
f = frozendict(a=1, b=[1]); m = immutables.Map(a=1); L = f['b']

# %%
L.append(2); g = f.set('c', 3); n = m.set('b', 2); g, dict(n)

# %%
f, g, dict(m), dict(n), f['b'] is L, hash(frozendict(a=1)) == hash(frozendict(a=1))

# %%
with n.mutate() as mm: mm['z'] = 1; k = mm.finish()
dict(k), k == n.set('z', 1)

# %%
dict(k), g['b'] is L, {frozendict(x=1): 5}[frozendict(x=1)]
