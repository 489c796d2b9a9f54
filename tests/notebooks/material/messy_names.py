# %% [markdown]
# # untitled7

# %%
import math, random, time
from math import *
x = 5

# %%
x
x + 1

# %%
l = [1, 2, 3]
l2 = l
l3 = l[:]
l2.append(4)
print(l, l3)

# %%
list = [3, 1, 2]         # oops
list

# %%
# raises: TypeError
list(range(3))

# %%
del list
list(range(3))

# %%
l += [5]
l = l + [6]
l, l2, l is l2

# %%
# raises: NameError
print(lenght)

# %%
# raises: ZeroDivisionError
a = 1
l2.append("before the error")
b = a / 0
c = 3

# %%
a, l2, 'b' in globals(), 'c' in dir()

# %%
try:
    int("seven")
except ValueError as e:
    print("error:", e)
    err = e
'e' in globals(), type(err)

# %%
# raises: SyntaxError
for i in range(3)
    print(i)

# %%
# raises: ValueError
def f(n):
    if n == 0:
        raise ValueError("bottom") from KeyError("k")
    return f(n - 1)
f(3)

# %%
for i in range(3):
    pass
i

# %%
def x():
    return "now a function"
x()

# %%
x = x()
x

# %%
globals()["dyn"] = [1]
exec("y = x.upper(); dyn.append(y)")
eval("len(dyn)"), y

# %%
y = None
y

# %%
def g():
    global counter
    counter = globals().get("counter", 0) + 1
    return counter
g(); g()

# %%
del x, y
# raises: NameError
x

# %%
matrix = [[0] * 3] * 3
matrix[0][0] = 1
rows = {id(r) for r in matrix}
del rows
matrix

# %%
d = {}
d["self"] = d
d

# %%
d["self"]["self"]["x"] = 1
len(d), d["self"] is d

# %%
__name__, type(get_ipython()).__name__, sorted(k for k in globals() if k.startswith("l") and len(k) < 3)
