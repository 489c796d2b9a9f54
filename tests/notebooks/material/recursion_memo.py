# %% [markdown]
# # Recursion

# %%
from functools import lru_cache, cache
import sys

# %%
def fact(n):
    return 1 if n <= 1 else n * fact(n - 1)
fact(20)

# %%
calls = 0
def fib(n):
    global calls
    calls += 1
    return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(15), calls

# %%
@lru_cache(maxsize=None)
def fast(n):
    return n if n < 2 else fast(n - 1) + fast(n - 2)
fast(80)

# %%
# compare: no, what lru_cache remembers does not travel
print(fast.cache_info())

# %%
def forever(n):
    return forever(n + 1)
try:
    forever(0)
except RecursionError as e:
    print("too deep:", e)

# %%
memo = {}
def knapsack(items, room):
    key = (len(items), room)
    if key not in memo:
        if not items:
            memo[key] = 0
        else:
            (weight, value), *rest = items
            best = knapsack(rest, room)
            if weight <= room:
                best = max(best, value + knapsack(rest, room - weight))
            memo[key] = best
    return memo[key]

knapsack([(2, 3), (3, 4), (4, 5), (5, 6)], 8), len(memo)

# %%
def hanoi(n, a="A", b="B", c="C", moves=None):
    if moves is None:
        moves = []
    if n:
        hanoi(n - 1, a, c, b, moves)
        moves.append((a, c))
        hanoi(n - 1, b, a, c, moves)
    return moves

moves = hanoi(4)
len(moves), moves[:3]

# %%
def permutations(items):
    if not items:
        return [[]]
    return [[x] + rest for i, x in enumerate(items) for rest in permutations(items[:i] + items[i + 1:])]
len(permutations(list("abcd"))), permutations([1, 2, 3])[-1]

# %%
nested = [1, [2, [3, [4]], 5]]
def flatten(x):
    return [z for y in x for z in (flatten(y) if isinstance(y, list) else [y])]
inner = nested[1][1]
flatten(nested)

# %%
inner.append([99])
inner.append(nested[1])            # now it bites its tail
nested

# %%
len(nested[1][1][3]), nested[1][1][3] is nested[1]

# %%
board = [[0] * 6 for _ in range(6)]
shared = [[0] * 2] * 2
shared[0][0] = 1
shared

# %%
def queens(n, placed=()):
    if len(placed) == n:
        return [placed]
    row = len(placed)
    return [
        solution
        for col in range(n)
        if all(col != c and abs(col - c) != row - r for r, c in enumerate(placed))
        for solution in queens(n, placed + (col,))
    ]
solutions = queens(6)
for r, c in enumerate(solutions[0]):
    board[r][c] = "Q"
solutions, board[0]

# %%
class Tree:
    def __init__(self, key):
        self.key, self.left, self.right = key, None, None
    def insert(self, key):
        side = "left" if key < self.key else "right"
        child = getattr(self, side)
        if child is None:
            setattr(self, side, Tree(key))
        else:
            child.insert(key)
    def walk(self):
        if self.left: yield from self.left.walk()
        yield self.key
        if self.right: yield from self.right.walk()

tree = Tree(50)
for key in (30, 70, 20, 40, 60, 80):
    tree.insert(key)
list(tree.walk())

# %%
subtree = tree.left
subtree.insert(35)
list(tree.walk())

# %%
chain = None
for i in range(400):
    chain = (i, chain)
def depth(c):
    d = 0
    while c:
        d += 1
        c = c[1]
    return d
depth(chain)

# %%
old_limit = sys.getrecursionlimit()
sys.setrecursionlimit(2500)
sum_to = lambda n: n and n + sum_to(n - 1)
sum_to(1000)

# %%
sys.getrecursionlimit()

# %%
sys.setrecursionlimit(old_limit)
fast.cache_clear()
fast(10), fast.cache_info().misses
