# %% [markdown]
# needs: bidict

# %%
from bidict import bidict, OrderedBidict, frozenbidict, ValueDuplicationError
d = bidict(a=1, b=2)
inv = d.inverse
print(inv[1], inv.inverse is d)

# %%
d["c"] = 3
inv[9] = "z"
print(inv[3], d["z"], d.inverse is inv)

# %%
class Names(OrderedBidict):
    def first(self):
        return next(iter(self.items()))
n = Names([("x", 1), ("y", 2)])
print(n.first(), type(n.inverse).__name__)

# %%
n.move_to_end("x")
print(n.first(), list(n.inverse), d == {"a": 1, "b": 2, "c": 3, "z": 9})

# %%
f = frozenbidict(d)
d.forceput("q", 1)
print(f.inverse[1], inv[1], {f: 1}[frozenbidict(f)])

# %%
# raises: ValueDuplicationError
d["new"] = 2
