# %% [markdown]
# needs: boltons

# %%
from boltons.dictutils import OrderedMultiDict, OneToOne, ManyToMany
from boltons.setutils import IndexedSet
from boltons.cacheutils import LRU, cachedproperty
from boltons.typeutils import make_sentinel
MISSING = make_sentinel("MISSING", var_name="MISSING")
omd = OrderedMultiDict([("a", 1), ("b", 2), ("a", 3)])
print(omd.getlist("a"), MISSING)

# %%
omd.add("a", 4)
s = IndexedSet("hello")
cache = LRU(max_size=2)
cache["a"] = omd
print(list(omd.items(multi=True)), s[1], MISSING is MISSING)

# %%
cache["b"] = 1
cache["c"] = 2
s.add("z")
default = {"x": MISSING}
print(list(cache), s[-1], default["x"] is MISSING)

# %%
print(default["x"] is MISSING, cache.miss_count, omd.poplast("a"))

# %%
class Slow:
    @cachedproperty
    def v(self):
        omd.add("v", 1)
        return 9
o = Slow()
print(o.v, o.v, omd.getlist("v"), s.index("z"))
