# %% [markdown]
# needs: hypothesis

# %%
from hypothesis import given, settings, strategies as st, find
numbers = st.lists(st.integers(0, 5), max_size=3)
seen = []
print(numbers)

# %%
@settings(max_examples=5, derandomize=True, database=None)
@given(numbers)
def check(xs):
    seen.append(len(xs))
    assert sorted(xs) == sorted(sorted(xs))
check()
print(len(seen) > 0)

# %%
n = len(seen)
check()
print(len(seen) - n == n, check.hypothesis is not None)

# %%
settings.register_profile("quick", max_examples=7)
settings.load_profile("quick")
print(settings().max_examples)

# %%
print(settings().max_examples, st.integers() is st.integers(), find(st.integers(3, 9), lambda i: i > 4, settings=settings(database=None, derandomize=True)))
