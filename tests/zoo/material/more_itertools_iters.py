# %% [markdown]
# needs: more_itertools

# %%
from more_itertools import peekable, seekable, bucket, spy, chunked, numeric_range, SequenceView
p = peekable([1, 2, 3])
data = [5, 6]
view = SequenceView(data)
print(p.peek(), view)

# %%
next(p)
p.prepend(10, 11)
data.append(7)
print(list(p)[:2], view[-1])

# %%
s = seekable(iter("abcdef"))
print(next(s), next(s))

# %%
s.seek(0)
print("".join(s), s.elements()[2])

# %%
r = numeric_range(0, 1, 0.25)
print(list(r), len(view), p.peek("end"))

# %%
# raises: IndexError
print(list(chunked(view, 2)), view[9])
