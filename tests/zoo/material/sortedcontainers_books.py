# %% [markdown]
# needs: sortedcontainers

# %%
from sortedcontainers import SortedDict, SortedList, SortedKeyList, SortedSet
prices = SortedDict({3: "c", 1: "a"})
ks = prices.keys()
lst = SortedKeyList(["ccc", "a", "bb"], key=len)
print(prices, list(ks), lst)

# %%
prices[2] = "b"
lst.add("dddd")
print(list(ks), prices.peekitem(0), lst[-1], ks.isdisjoint([9]))

# %%
class Board(SortedList):
    def best(self):
        return self[-1] if self else None
board = Board([5, 3])
both = [board, board]
print(board.best(), type(board).__name__)

# %%
both[0].add(10)
s = SortedSet("hello")
print(board.best(), both[1] is board, s & set("help"))

# %%
s.add("z")
del prices[1]
print(s[-1], list(prices.irange(2)), ks[0], board.bisect(4))

# %%
# raises: ValueError
board.remove(99)
