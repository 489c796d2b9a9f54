# %% [markdown]
# # Coroutines, generators and threads

# %%
import asyncio, contextlib, functools, itertools, queue, threading
from concurrent.futures import ThreadPoolExecutor
log = []

# %%
async def fetch(name, turns):
    for turn in range(turns):
        log.append((name, turn))
        await asyncio.sleep(0)
    return name.upper()

await asyncio.gather(fetch("a", 2), fetch("b", 3))

# %%
log

# %%
async def numbers(n):
    for i in range(n):
        yield i
        await asyncio.sleep(0)

[i async for i in numbers(4)], {i: i * i async for i in numbers(3)}

# %%
async for i in numbers(3):
    print("got", i)
last = i

# %%
@contextlib.asynccontextmanager
async def room(name):
    print("enter", name)
    try:
        yield name
    finally:
        print("leave", name)

async with room("one") as one, room("two") as two:
    print(one, two)

# %%
q = asyncio.Queue()
async def producer():
    for i in range(3):
        await q.put(i)
    await q.put(None)
async def consumer():
    seen = []
    while (item := await q.get()) is not None:
        seen.append(item)
    return seen
_, consumed = await asyncio.gather(producer(), consumer())
consumed, q.qsize()

# %%
del q

# %%
# stays: task
task = asyncio.create_task(fetch("t", 2))
result = await task
result, task.done()

# %%
del task

# %%
# raises: TimeoutError
# compare: no, IPython marks another line of the first of two exceptions
async with asyncio.timeout(0):
    await asyncio.sleep(60)

# %%
try:
    async with asyncio.TaskGroup() as group:
        group.create_task(fetch("good", 1))
        group.create_task(asyncio.wait_for(asyncio.sleep(60), 0))
except* TimeoutError as errors:
    caught = [type(error).__name__ for error in errors.exceptions]
del group
caught

# %%
def countdown(n):
    """A generator, used up in one cell."""
    while n:
        sent = yield n
        n -= sent or 1

g = countdown(5)
out = [next(g), g.send(2), *g]
del g
out

# %%
def flatten(tree):
    for node in tree:
        if isinstance(node, list):
            yield from flatten(node)
        else:
            yield node

list(flatten([1, [2, [3, [4]], 5]])), list(itertools.islice(itertools.count(3, 2), 4))

# %%
# stays: lazy
lazy = (i * i for i in range(5))
next(lazy)

# %%
squares = map(lambda x: x * x, [1, 2, 3])
next(squares)

# %%
list(squares), list(squares)

# %%
pairs = zip("abc", itertools.count())
next(pairs), next(pairs)

# %%
next(pairs)

# %%
done = queue.Queue()
def work(n):
    done.put(n * n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sorted(done.get() for _ in threads)

# %%
del threads, thread, done

# %%
with ThreadPoolExecutor(3) as pool:
    mapped = list(pool.map(functools.partial(pow, 2), range(6)))
mapped

# %%
del pool

# %%
lock, counter = threading.Lock(), 0
def add(times):
    global counter
    for _ in range(times):
        with lock:
            counter += 1
workers = [threading.Thread(target=add, args=(100,)) for _ in range(3)]
[w.start() for w in workers]; [w.join() for w in workers]
counter, lock.locked()

# %%
del workers
local = threading.local()
local.value = "mine"
local.value

# %%
del local

# %%
asyncio.iscoroutinefunction(fetch), asyncio.get_running_loop().is_running()
