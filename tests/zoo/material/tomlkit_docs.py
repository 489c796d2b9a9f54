# %% [markdown]
# needs: tomlkit

# %%
import tomlkit
doc = tomlkit.parse('# top\n[a]\nx = 1 # one\n[[t]]\nn=1\n')
a = doc['a']

# %%
a['x'] = 2; doc['new'] = [1, 2]; tomlkit.dumps(doc)

# %%
tomlkit.dumps(doc), a is doc['a'], doc['new'].append(3)

# %%
tomlkit.dumps(doc); doc['t'].append({'n': 2}); len(doc['t'])

# %%
tomlkit.dumps(doc)
