# %% [markdown]
# needs: wrapt

# %%
import wrapt
calls = []
@wrapt.decorator
def noted(wrapped, instance, args, kwargs):
    calls.append((wrapped.__name__, instance is None))
    return wrapped(*args, **kwargs)
@noted
def f(n):
    return n + 1
print(f(1), calls)

# %%
class Thing:
    @noted
    def go(self):
        return "gone"
t = Thing()
print(t.go(), f(2), len(calls))

# %%
data = [1, 2]
proxy = wrapt.ObjectProxy(data)
proxy.append(3)
print(data, isinstance(proxy, list), f.__wrapped__(1))

# %%
data.append(4)
print(len(proxy), t.go(), len(calls), f.__name__)

# %%
class Loud(wrapt.ObjectProxy):
    def shout(self):
        return str(self.__wrapped__).upper()
l = Loud(["a"])
print(l.shout(), l + ["b"], proxy.__wrapped__ is data)
