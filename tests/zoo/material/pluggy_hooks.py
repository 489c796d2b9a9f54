# %% [markdown]
# needs: pluggy

# %%
import pluggy
hookspec = pluggy.HookspecMarker("eggs")
hookimpl = pluggy.HookimplMarker("eggs")
class Spec:
    @hookspec
    def add(self, items: list) -> list:
        """Give more."""
    @hookspec(firstresult=True)
    def pick(self, n):
        """One."""
pm = pluggy.PluginManager("eggs")
pm.add_hookspecs(Spec)
print(pm.hook.add(items=[1]))

# %%
class One:
    @hookimpl
    def add(self, items):
        items.append("one")
        return ["spam"]
one = One()
pm.register(one, name="one")
print(pm.hook.add(items=[]), pm.get_plugins() == {one})

# %%
class Two:
    @hookimpl(tryfirst=True)
    def add(self, items):
        return ["ham", len(items)]
    @hookimpl
    def pick(self, n):
        return n * 2
two = Two()
pm.register(two)
basket = []
print(pm.hook.add(items=basket), basket, pm.hook.pick(n=4))

# %%
print(pm.get_plugin("one") is one, pm.is_registered(two), pm.has_plugin("one"))

# %%
class Wrap:
    @hookimpl(wrapper=True)
    def add(self, items):
        res = yield
        return [r for rs in res for r in rs]
pm.register(Wrap(), name="wrap")
print(pm.hook.add(items=basket))

# %%
log = []
undo = pm.add_hookcall_monitoring(lambda name, impls, kw: log.append(name), lambda o, name, impls, kw: log.append(o.get_result()))
print(pm.hook.pick(n=1), log)

# %%
undo()
print(pm.hook.pick(n=3), len(log))

# %%
pm.unregister(name="one")
print(pm.hook.add(items=[]), pm.list_name_plugin()[-1][0])

# %%
sub = pm.subset_hook_caller("add", remove_plugins=[two])
print(sub(items=[]))

# %%
try:
    pm.register(two)
except ValueError as e:
    print("twice", type(e).__name__)
