# %% [markdown]
# needs: reactivex

# %%
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject, BehaviorSubject
got = []
s = Subject()
d = s.pipe(ops.filter(lambda x: x % 2 == 0), ops.map(lambda x: x * 10)).subscribe(got.append)
s.on_next(1); s.on_next(2)
print(got)

# %%
s.on_next(4)
print(got)

# %%
b = BehaviorSubject(7)
log = []
b.subscribe(lambda v: log.append(("a", v)))
b.on_next(8)
print(log, b.value)

# %%
b.subscribe(lambda v: log.append(("b", v)))
b.on_next(9)
print(log)

# %%
acc = []
s.pipe(ops.scan(lambda a, x: a + x, 0), ops.take(3)).subscribe(acc.append, on_completed=lambda: acc.append("done"))
s.on_next(2); s.on_next(4)
print(acc, got)

# %%
s.on_next(6); s.on_next(8)
print(acc, got)

# %%
d.dispose()
s.on_next(10)
print(got)

# %%
xs = rx.from_([3, 1, 2]).pipe(ops.to_list()).run()
print(xs)

# %%
s.on_completed()
try:
    s.on_next(12)
    print("ignored", got[-1])
except Exception as e:
    print(type(e).__name__)

# %%
rx.zip(rx.of(1, 2), rx.of("a", "b")).subscribe(print)
