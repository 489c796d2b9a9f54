# %% [markdown]
# # A settings object, a registry, patches, and print with a prefix

# %%
import abc, enum, functools, logging, types, typing
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace, asdict, KW_ONLY

# %%
class Color(enum.Enum):
    RED = "r"
    GREEN = "g"
    @property
    def pretty(self):
        return self.name.title()
class Perm(enum.IntFlag):
    R = 4
    W = 2
    RW = R | W
Color("r").pretty, Perm.RW & Perm.W, list(Perm)

# %%
@dataclass(order=True)
class Shape(abc.ABC):
    sort_index: float = field(init=False, repr=False)
    _: KW_ONLY
    color: Color = Color.RED
    tags: list = field(default_factory=list)
    registry: typing.ClassVar[dict] = {}
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Shape.registry[cls.__name__] = cls
    def __post_init__(self):
        self.sort_index = self.area()
    @abc.abstractmethod
    def area(self): ...

@dataclass(order=True)
class Square(Shape):
    side: float = 1.0
    def area(self):
        return self.side ** 2

@dataclass(order=True)
class Circle(Shape):
    radius: float = 1.0
    def area(self):
        return 3 * self.radius ** 2
shapes = [Circle(radius=2), Square(side=3), Square(side=1, color=Color.GREEN)]
sorted(shapes, key=lambda s: s.sort_index), list(Shape.registry)

# %%
shapes[0].tags.append("big")
twin = replace(shapes[0], color=Color.GREEN)
twin.tags is shapes[0].tags, twin.color is Color.GREEN, asdict(twin)["tags"]

# %%
# raises: TypeError
Shape()

# %%
# Patched after the fact, as notebooks do
def describe(self):
    return f"{type(self).__name__} of {self.area()}"
Shape.describe = describe
Square.__str__ = lambda self: f"[{self.side}]"
[s.describe() for s in shapes], str(shapes[1])

# %%
original = Square.area
@functools.wraps(original)
def counted(self):
    counted.calls += 1
    return original(self)
counted.calls = 0
Square.area = counted
[s.area() for s in shapes], counted.calls

# %%
shapes[1].area(), counted.calls, Square.area.__wrapped__ is original

# %%
Square.area = original
shapes[0].describe = types.MethodType(lambda self: "patched on one", shapes[0])
[s.describe() for s in shapes]

# %%
# A print of one's own, in the notebook's namespace
builtin_print = print
def print(*args, **kwargs):
    builtin_print(">>", *args, **kwargs)
print("hello", end="!\n")

# %%
del print
print("plain again")

# %%
class Settings:
    """One for all."""
    _instance = None
    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance.values = defaultdict(Counter)
        return cls._instance
Settings().values["runs"]["a"] += 1
Settings() is Settings()

# %%
Settings().values["runs"]["a"] += 1
Settings().values["runs"], Settings()._instance is Settings._instance

# %%
handlers = defaultdict(list)
def on(event):
    def register(function):
        handlers[event].append(function)
        return function
    return register
@on("start")
def greet(name): return f"hi {name}"
@on("start")
@on("stop")
def shout(name): return name.upper()
{event: [f("bo") for f in fs] for event, fs in handlers.items()}

# %%
handlers["stop"][0] is handlers["start"][1] is shout

# %%
class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        cls.made = getattr(cls, "made", 0) + 1
        return made
class Tracked(metaclass=Meta):
    __slots__ = ("x", "__weakref__")
    def __init__(self, x): self.x = x
a, b = Tracked(1), Tracked(2)
Tracked.made

# %%
c = Tracked(a)
a.x = c
Tracked.made, a.x.x is a

# %%
class Celsius:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, obj, owner=None): return self if obj is None else getattr(obj, self.name, 0)
    def __set__(self, obj, value):
        if value < -273: raise ValueError(f"{value} is too cold")
        setattr(obj, self.name, value)
class Weather:
    t = Celsius()
w = Weather(); w.t = 21
w.t, vars(w)

# %%
# raises: ValueError
w.t = -300

# %%
# state: no logger, its handlers hold the kernel's own streams
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", force=True)
logger = logging.getLogger("nb")
logger.info("seen"); logger.debug("unseen")

# %%
logger.setLevel(logging.DEBUG)
logger.debug("seen now")

# %%
# state: no Stack, it has T in a tuple of its own
T = typing.TypeVar("T")
class Stack(typing.Generic[T]):
    def __init__(self) -> None: self.items: list[T] = []
    def push(self, item: T) -> "Stack[T]":
        self.items.append(item); return self
class Point(typing.NamedTuple):
    x: int
    y: int = 0
Stack[int]().push(3).items, Point(1), Point(1) == (1, 0), typing.get_type_hints(Point)

# %%
match [shapes[1], Point(1, 2), {"kind": Color.RED, "n": 3}]:
    case [Square(side=s), Point(x, y), {"kind": Color.RED, **rest}]:
        found = s, x, y, rest
found

# %%
# state: no show, what it has looked up is a cache
@functools.singledispatch
def show(x): return f"? {x}"
@show.register
def _(x: int): return f"int {x}"
@show.register(list)
def _(x): return [show(i) for i in x]
show([1, "a", [2]])

# %%
@show.register(str)
def _(x): return f"str {x}"
show([1, "a"])

# %%
@functools.cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(30), fib.__wrapped__(5)

# %%
exec("made_by_exec = [1, 2]"); globals()["by_globals"] = 3
made_by_exec, by_globals, "shapes" in dir()
