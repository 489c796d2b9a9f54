# %% [markdown]
# needs: tinydb, diskcache, zict

# %%
from tinydb import TinyDB, Query, where
from tinydb.storages import MemoryStorage
import diskcache, zict
db = TinyDB(storage=MemoryStorage); db.insert({'a': 1}); t = db.table('t')
dc = diskcache.Cache('cache'); dc['k'] = 1
lru = zict.LRU(2, {}, on_evict=lambda k, v: ev.append(k)); ev = []

# %%
t.insert({'b': 2}); db.update({'a': 5}, where('a') == 1); db.all(), t.all()

# %%
db.all(), t.all(), db.tables(), len(db)

# %%
dc['k'] += 1; dc['k']

# %%
dc['k'], dc.stats()

# %%
lru['a'] = 1; lru['b'] = 2; lru['c'] = 3; ev, dict(lru)

# %%
lru['a'] = 4; ev, sorted(lru)

# %%
@dc.memoize()
def sq(x): print('run'); return x * x
sq(3)

# %%
sq(3)

# %%
dc.close()
