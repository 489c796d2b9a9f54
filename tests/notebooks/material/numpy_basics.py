# %% [markdown]
# # Lab 2: arrays
# Views or copies? Broadcasting. Doing things in place.

# %%
import numpy as np
np.set_printoptions(precision=3, suppress=True)
print(np.__name__)

# %%
a = np.arange(12)
a

# %%
m = a.reshape(3, 4)      # same numbers, other shape
row = m[1]
corner = m[:2, :2]
print(m)
print(row.base is a, corner.base is a, np.shares_memory(a, m))

# %%
row[:] = -1              # who changes?
print(a)
print(m)

# %%
m[0, 0] = 100
a[-1] = 99
corner

# %%
c = m.copy()
c += 1000
print("copy:", c[0, 0], "original:", m[0, 0])
fancy = m[[0, 2]]        # fancy indexing copies
fancy[:] = 0
m

# %%
# in place or not?
x = np.ones(5)
y = x
x += 1
print(x is y, y)
x = x + 1
print(x is y, y)

# %%
def normalize(v):
    v -= v.mean()
    v /= v.std()

z = np.array([1., 2., 3., 4.])
backup = z[:2]
normalize(z)
print(z, backup)

# %%
# broadcasting
table = np.arange(1, 10)[:, None] * np.arange(1, 10)
print(table.shape)
table[:3]

# %%
table[:3] - table[:3].mean(axis=0)

# %%
# raises: ValueError
np.ones((2, 3)) + np.ones((3, 2))

# %%
mask = table % 3 == 0
table[mask] = 0
even_rows = table[::2]
even_rows[:, ::3] *= -1
table

# %%
mask.sum(), table.sum(axis=1), table.dtype

# %%
np.random.seed(7)
r = np.random.rand(3)
print(r)

# %%
print(np.random.randint(0, 10, size=5))
rng = np.random.default_rng(3)
rng.normal(size=3)

# %%
sample = rng.choice(a, size=4, replace=False)
sample, rng.integers(100)

# %%
T = m.T
T[0] = [7, 8, 9]
print(m)
print(T.flags["C_CONTIGUOUS"], T.flags["F_CONTIGUOUS"])

# %%
people = np.array([("Ann", 31, 1.7), ("Bob", 25, 1.8)], dtype=[("name", "U10"), ("age", "i4"), ("height", "f8")])
ages = people["age"]
ages += 1
people

# %%
bits = np.zeros(8, dtype=np.uint8)
as_int = bits.view(np.uint64)
bits[1] = 1
print(as_int)
stack = [a, m, row]
stack[2][0] = 5
a

# %%
frozen = np.arange(3)
frozen.flags.writeable = False
objs = np.empty(3, dtype=object)
objs[0] = stack
objs[1] = "text"
objs[0].append(frozen)
len(stack)

# %%
# raises: ValueError
frozen[0] = 1

# %%
with np.errstate(divide="ignore"):
    print(np.array([1., 2.]) / 0)
old = np.seterr(all="raise")
old["divide"]

# %%
# raises: FloatingPointError
np.array([1.]) / 0

# %%
_ = np.seterr(**old)
np.save("a.npy", a)
b = np.load("a.npy")
np.array_equal(a, b), b is a
