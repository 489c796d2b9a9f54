# %% [markdown]
# needs: attrs

# %%
import attr
from attrs import define, field, validators, evolve, asdict, frozen
@define
class Dose:
    mg: float = field(validator=validators.gt(0), converter=float)
    tags: list = field(factory=list)
d = Dose("5")
plan = [d, d]
print(d, plan[0] is plan[1])

# %%
d.tags.append("am")
e = evolve(d, mg=7)
print(plan[1].tags, e.tags is d.tags)

# %%
@frozen(order=True)
class Key:
    a: int
    b: str = attr.ib(default="x", eq=False)
keys = {Key(1): "one", Key(2): "two"}
print(keys[Key(1)], max(keys))

# %%
@define(slots=False)
class Sub(Dose):
    extra: int = 0
    @property
    def total(self):
        return self.mg + self.extra
s = Sub(1, extra=2)
print(s.total, asdict(s), keys[Key(2)])

# %%
d.mg = 12
s.tags.append(d)
print(s.tags[0] is plan[0], attr.fields(Sub).extra.default, isinstance(s, Dose))

# %%
# raises: ValueError
Dose(-1)
