# %% [markdown]
# needs: traitlets

# %%
from traitlets import HasTraits, Int, List, Instance, observe, validate, link, TraitError
from traitlets.config import Configurable, Config
class Knob(HasTraits):
    value = Int(0)
    past = List()
    @observe("value")
    def _kept(self, change):
        self.past = self.past + [change.old]
    @validate("value")
    def _low(self, proposal):
        return min(proposal.value, 100)
a, b = Knob(), Knob()
joined = link((a, "value"), (b, "value"))
a.value = 3
print(b.value, a.past)

# %%
b.value = 500
print(a.value, b.past)

# %%
heard = []
a.observe(lambda change: heard.append(change.new), "value")
a.value = 7
print(heard, b.value)

# %%
a.value = 8
joined.unlink()
b.value = 1
print(heard, a.value, b.value)

# %%
class Runner(Configurable):
    n = Int(1).tag(config=True)
    knob = Instance(Knob)
c = Config()
c.Runner.n = 9
r = Runner(config=c, knob=a)
print(r.n, r.knob is a, r.trait_names(config=True))

# %%
# raises: TraitError
a.value = "text"
