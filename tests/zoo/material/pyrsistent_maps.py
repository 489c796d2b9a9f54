# %% [markdown]
# needs: pyrsistent

# %%
from pyrsistent import pmap, pvector, PRecord, field, freeze, thaw, PClass, v, m
a = pmap({"x": 1, "y": pvector([1, 2])})
b = a.set("x", 2)
print(a["x"], b["x"], a["y"] is b["y"])

# %%
class Item(PRecord):
    n = field(type=int, mandatory=True)
    tags = field(initial=v())
i = Item(n=1)
print(i, b.transform(["y", 0], 9)["y"])

# %%
j = i.set(tags=i.tags.append("t"))
print(j, type(j).__name__, i.tags)

# %%
class Node(PClass):
    left = field()
    val = field(type=int)
n = Node(val=1, left=j)
e = b.evolver()
e["z"] = 3
print(n.left is j, len(e.persistent()))

# %%
e["w"] = 4
print(sorted(e.persistent()), thaw(freeze({"k": [1]})), {a: 1}[pmap({"x": 1, "y": v(1, 2)})])

# %%
# raises: PTypeError
Item(n="one")
