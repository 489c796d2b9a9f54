# %% [markdown]
# needs: toolz

# %%
from toolz import curry, pipe, compose, memoize, groupby, itertoolz, functoolz
@curry
def add(a, b, c=0):
    return a + b + c
inc = add(1)
f = compose(str, inc, abs)
print(inc(2), f(-4), inc.func)

# %%
calls = []
@memoize
def slow(n):
    calls.append(n)
    return n
slow(1); slow(1)
print(calls, add(1)(2, c=5))

# %%
slow(1); slow(2)
print(calls, inc == add(1))

# %%
print(pipe([3, 1, 2], sorted, list), groupby(len, ["a", "bb", "c"]), f.first is abs)

# %%
it = itertoolz.peekn(2, iter(range(5)))
print(it[0], list(it[1]), functoolz.juxt(inc, f)(1))

# %%
# raises: TypeError
inc("x")
