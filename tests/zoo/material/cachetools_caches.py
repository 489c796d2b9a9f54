# %% [markdown]
# needs: cachetools

# %%
import cachetools, operator
from cachetools import LRUCache, TTLCache, cached, cachedmethod
from cachetools.keys import hashkey
c = LRUCache(maxsize=3)
for i in range(4):
    c[i] = i * i
print(sorted(c), c.currsize)

# %%
c[1]; c[9] = 81
print(sorted(c))

# %%
count = []
@cached(cache={}, info=True)
def fib(n):
    count.append(n)
    return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(10), len(count), fib.cache_info())

# %%
print(fib(12), len(count), fib.cache_info())

# %%
class Clock:
    now = 0
    def __call__(self):
        return self.now
clock = Clock()
ttl = TTLCache(maxsize=10, ttl=5, timer=clock)
ttl["a"] = 1
clock.now = 3
ttl["b"] = 2
print(sorted(ttl))

# %%
clock.now = 6
print(sorted(ttl), ttl.expire())

# %%
class Loud(LRUCache):
    def popitem(self):
        k, v = super().popitem()
        print("out", k)
        return k, v
l = Loud(maxsize=2)
l["x"] = 1; l["y"] = 2
print(len(l))

# %%
l["z"] = 3
print(sorted(l))

# %%
class Shop:
    def __init__(self):
        self.cache = LRUCache(maxsize=8)
        self.asked = 0
    @cachedmethod(operator.attrgetter("cache"))
    def price(self, n):
        self.asked += 1
        return n * 3
shop = Shop()
print(shop.price(2), shop.price(2), shop.asked)

# %%
print(shop.price(2), shop.price(3), shop.asked, len(shop.cache))

# %%
fib.cache_clear()
print(fib(3), fib.cache_info(), fib.cache_key(3) == hashkey(3))
