# %% [markdown]
# needs: multidict, yarl

# %%
from multidict import CIMultiDict, MultiDict, istr, MultiDictProxy
from yarl import URL
h = CIMultiDict([("A", "1"), ("a", "2")])
view = MultiDictProxy(MultiDict(x=1))
url = URL("http://u:p@h/a/b?x=1#f")
print(h.getall("A"), url.host, view["x"])

# %%
h.add("B", "3")
keys = h.keys()
print(len(h), list(keys), url / "c" % {"y": "2"})

# %%
inner = MultiDict(x=1)
proxy = MultiDictProxy(inner)
inner.add("y", 2)
print(proxy, proxy["y"])

# %%
inner["z"] = 3
h["C"] = "4"
print(dict(proxy), list(keys), url == URL(str(url)), {url: 1}[url])

# %%
key = istr("Content")
h[key] = "5"
print(h["content"], type(list(h.keys())[-1]).__name__, proxy.copy())
