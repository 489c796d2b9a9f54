# %% [markdown]
# needs: param

# %%
import param
class Tank(param.Parameterized):
    level = param.Number(0.5, bounds=(0, 1))
    name_of = param.String("a")
    area = param.Number(2.0)
    @param.depends("level", "area")
    def volume(self):
        return self.level * self.area
t = Tank(level=0.25)
print(t.volume(), t.param.level.bounds)

# %%
seen = []
w = t.param.watch(lambda e: seen.append((e.name, e.old, e.new)), ["level"])
t.level = 0.75
print(seen)

# %%
t.level = 0.5
print(seen[-1], len(seen))

# %%
class Big(Tank):
    area = param.Number(10.0)
    tags = param.List(default=["x"])
    @param.depends("level", watch=True)
    def _on(self):
        self.tags = self.tags + [round(self.level, 2)]
b = Big()
b.level = 0.1
print(b.tags, b.volume())

# %%
b.level = 0.2
print(b.tags, Big.param.area.default, isinstance(b, Tank))

# %%
try:
    b.level = 7
except ValueError as e:
    print(type(e).__name__, b.level)

# %%
with param.parameterized.discard_events(b):
    b.level = 0.9
print(b.tags, b.level)

# %%
t.param.unwatch(w)
t.level = 0.1
print(len(seen))

# %%
Tank.area = 3.0
print(t.volume(), Tank().area, b.area)

# %%
s = b.param.serialize_parameters(subset=["level", "tags"])
print(s, Big.param.deserialize_parameters(s))

# %%
f = param.bind(lambda level, k: level * k, t.param.level, k=100)
print(round(f(), 3))

# %%
t.level = 0.3
print(round(f(), 3))
