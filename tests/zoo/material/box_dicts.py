# %% [markdown]
# needs: box

# %%
from box import Box, BoxList
b = Box({"a": {"n": 1}, "l": [{"x": 1}]}, default_box=True)
inner = b.a
print(b.a.n, type(b.l).__name__, inner is b["a"])

# %%
b.a.n = 5
b.fresh.deep.value = 3
print(inner.n, b.fresh.to_dict(), b.a is inner)

# %%
class Conf(Box):
    def size(self):
        return len(self)
c = Conf(b, frozen_box=False)
print(c.size(), type(c.a).__name__)

# %%
b.l.append({"x": 2})
b.l[0].x = 10
print(b.l[1].x, b.to_json(), c.l[0].x)

# %%
# raises: BoxError
f = Box({"q": 1}, frozen_box=True)
print({f: 1}[f], b.nothing)
f.q = 2
