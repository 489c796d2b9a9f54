# %% [markdown]
# # Functions, closures, decorators, generators

# %%
import functools
import itertools
from contextlib import contextmanager

# %%
def make_counter():
    count = 0
    def counter():
        nonlocal count
        count += 1
        return count
    def reset():
        nonlocal count
        count = 0
    return counter, reset

counter, reset = make_counter()
counter(), counter()

# %%
print(counter())
reset()
counter()

# %%
def add_to(item, bag=[]):
    bag.append(item)
    return bag

add_to(1)
add_to(2)

# %%
add_to("x"), add_to.__defaults__

# %%
calls = []
def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.count += 1
        calls.append(function.__name__)
        return function(*args, **kwargs)
    wrapper.count = 0
    return wrapper

@traced
def area(w, h=1):
    """Width times height."""
    return w * h

# %%
area(3), area(3, h=4), area.count, area.__doc__

# %%
functions = [lambda: i for i in range(3)]
fixed = [lambda i=i: i for i in range(3)]
[f() for f in functions], [f() for f in fixed]

# %%
def repeat(times):
    def decorator(function):
        def wrapper(*args):
            return [function(*args) for _ in range(times)]
        return wrapper
    return decorator

@repeat(2)
@traced
def greet(name):
    print(f"hello {name}")
    return len(name)

greet("ann")

# %%
calls

# %%
# stays: numbers
def countdown(n):
    while n:
        yield n
        n -= 1

numbers = countdown(4)
next(numbers)

# %%
print(next(numbers))
list(numbers)

# %%
del numbers
def chain_of(*parts):
    for part in parts:
        yield from part

total = sum(chain_of(range(3), countdown(3), [10]))
total

# %%
squares = map(lambda v: v * v, range(5))
next(squares), next(squares)

# %%
list(squares), list(squares)

# %%
it = iter([1, 2, 3])
also = it
next(it)

# %%
next(also), list(it)

# %%
cycle = itertools.cycle("ab")
ids = itertools.count(10)
[next(cycle) for _ in range(3)], next(ids)

# %%
next(cycle), next(ids), list(itertools.islice(ids, 2))

# %%
@contextmanager
def tag(name):
    print(f"<{name}>")
    try:
        yield name.upper()
    except ValueError as error:
        print("caught", error)
    finally:
        print(f"</{name}>")

with tag("b") as upper:
    print(upper)
    raise ValueError("inside")

# %%
double = functools.partial(area, h=2)
compose = lambda *fs: functools.reduce(lambda f, g: lambda x: g(f(x)), fs)
pipeline = compose(double, str, list)
pipeline(21), area.count

# %%
# raises: TypeError
area()

# %%
registry = {}
def register(function):
    registry[function.__name__] = function
    return function

@register
def plus(a, b): return a + b
@register
def minus(a, b): return a - b

[registry[name](5, 3) for name in registry]

# %%
def plus(a, b): return "new"
registry["plus"](1, 1), plus(1, 1), registry["plus"] is plus

# %%
x = 10
def outer():
    x = 20
    def inner():
        global x
        x += 1
        return x
    return inner(), x

outer(), x

# %%
import inspect
print(inspect.getsource(make_counter)[:40])
inspect.signature(area)
