# %% [markdown]
# needs: psutil

# %%
import psutil
me = psutil.Process()
print(type(me.memory_info()).__name__, me.is_running())

# %%
same = psutil.Process(me.pid)
print(same == me, me.name() == same.name())

# %%
class Watch:
    def __init__(self):
        self.seen = psutil.cpu_times()._fields[:2]
w = Watch()
print(w.seen)

# %%
usage = psutil.virtual_memory()
print(usage.total > 0, type(usage).__name__, w.seen[0])

# %%
# raises: NoSuchProcess
psutil.Process(2**22 + 5)
