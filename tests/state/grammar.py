# ruff: noqa: E501  a row is a line
"""The grammar of random programs: definitions, rows for values and statements, and what the words in them stand for.

A word in capitals is drawn: a kind of object (an expression that gives one, from the names on), a name, or another row.
The same word twice in a row is the same text; a digit makes it another.
"""

import array
import collections
import enum
import functools
import io
import random
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

IMPORTS = "import array, collections, datetime, enum, functools, io, random, types, typing, weakref"
NUMPY, PANDAS = "import numpy as np", "import pandas as pd"
#: Definitions that a setup may hold; each is useful without the others, but for the class that `Q` extends.
DEFINITIONS = {
    "P": "class P:\n  kinds = []\n  made = 0\n  def __init__(s, v=None):\n    s.v = v; s.kids = []; P.made += 1\n  def add(s, x): s.kids.append(x); return s\n  def mark(s, x): s.kinds.append(x); return len(s.kinds)",
    "Q": "class Q(P):\n  def add(s, x): s.last = x; return super().add(x)",
    "S": "class S:\n  __slots__ = ('a', '__b')\n  def __init__(s, a=None): s.a = a; s.__b = [a]\n  def b(s): return s.__b",
    "D": "import dataclasses\n@dataclasses.dataclass\nclass D:\n  x: object = None\n  items: list = dataclasses.field(default_factory=list)",
    "G": "class G:\n  def __init__(s, v=None): s.v = v; s.log = []\n  def __getstate__(s): return {'all': dict(s.__dict__)}\n  def __setstate__(s, t): s.__dict__.update(t['all'])",
    "L": "class L(list):\n  tag = None\n  def append(s, x): s.tag = x; super().append(x)",
    "M": "class M(dict):\n  def __missing__(s, k): s[k] = []; return s[k]",
    "N": "class N(typing.NamedTuple):\n  first: object = None\n  second: object = None",
    "F": "import dataclasses\n@dataclasses.dataclass(slots=True)\nclass F:\n  x: object = None\n  y: list = dataclasses.field(default_factory=list)",
    "K": "class K(enum.Enum):\n  Red = 1\n  Blue = (2, 'b')\n  def told(s): return s.value",
    "lazy": "class lazy:\n  @functools.cached_property\n  def found(s): return [s]",
    "cached": "@functools.lru_cache(maxsize=None)\ndef cached(x=0): return [x]",
    "E": "class E(Exception):\n  def __init__(s, a, b=None): super().__init__(a); s.b = b",
    "counter": "def counter(n=0):\n  box = []\n  def up(x=None):\n    nonlocal n\n    n += 1; box.append(x)\n    return n\n  def get(): return n, box\n  return up, get",
    "keep": "def keep(x, acc=[], *, log={}):\n  acc.append(x); log[len(acc)] = x\n  return acc",
    "put": "def put(x):\n  global g\n  g = x",
    "look": "def look(): return g",
    "drop": "def drop():\n  global g\n  del g",
    "counted": "def counted(f):\n  @functools.wraps(f)\n  def inner(*a, **k):\n    inner.calls += 1\n    return f(*a, **k)\n  inner.calls = 0\n  return inner",
}  # fmt: skip

#: New objects, by weight. A row counts only where all its words can be drawn.
VALUES: list[tuple[int, str]] = [
    (5, r"""
    [ITEM, ITEM2]
    [ITEM] * 2
    []
    {'x': ITEM, 'y': ITEM2}
    {'x': ITEM}
    {}
    (ITEM, ITEM2)
    tuple([ITEM])
    {1, 2, (3, 'k')}
    set()
    frozenset([1, 4])
    bytearray(b'abc')
    collections.deque([ITEM], maxlen=3)
    collections.OrderedDict(x=ITEM, y=ITEM2)
    collections.defaultdict(list)
    """),
    (4, r"""
    MAKER(ITEM)
    MAKER([ITEM])
    L([ITEM])
    M(x=ITEM)
    FAILURE(ITEM)
    """),
    (2, r"""
    lambda x, acc=[ITEM]: acc
    lambda: g
    counter()
    counter(ITEM)[0]
    functools.partial(FUNCTION, ITEM)
    counted(FUNCTION)
    PARENT.add
    LIST.append
    """),
    (1, r"""
    random.Random(5)
    iter(LIST)
    vars(OWNER)
    """),
    (2, r"""
    io.StringIO('some text')
    io.BytesIO(b'some bytes')
    array.array('d', [1.0, 2.0])
    types.SimpleNamespace(v=ITEM)
    collections.Counter('aab')
    collections.ChainMap({}, DICT)
    weakref.ref(OWNER)
    N(ITEM, ITEM2)
    F(ITEM)
    K.Red
    [K.Red, K.Blue]
    lazy()
    cached(1)
    cached
    DICT.keys()
    datetime.datetime(2020, 1, 2)
    np.random.default_rng(3)
    np.random.default_rng(3)
    np.random.RandomState(4)
    DRAWS.bit_generator
    """),
    (4, r"""
    np.arange(6)
    np.arange(12.0).reshape(3, 4)
    np.zeros(4, dtype='u1')
    np.asfortranarray(np.ones((2, 3), dtype='f4'))
    np.array([True, False])
    np.array([ITEM, None, 'o'], dtype=object)[:]
    np.zeros(2, dtype=[('x', 'i4'), ('y', 'f8')])
    VIEW
    VIEW
    """),
    (2, r"""
    pd.DataFrame({'a': [1, 2, 3], 'b': ['x', None, 'y']})
    pd.Series([1.5, 2.5], name='s')
    FRAME.copy()
    FRAME.head(2)
    FRAME[FRAME.columns[0]]
    """),
]  # fmt: skip

VIEWS = r"""
    ARRAY[1:]
    ARRAY[1:4]
    ARRAY[::2]
    ARRAY[::-1]
    ARRAY[...]
    ARRAY[None]
    ARRAY.reshape(-1)
    ARRAY.ravel()[2:]
    ARRAY.T
    ARRAY.copy()
"""

#: Statements, by weight.
STATEMENTS: list[tuple[int, str]] = [
    (5, r"""
    BOUND, BOUND2 = BOUND2, BOUND
    BOUND = BOUND2
    BOUND = ITEM
    NAME = ANY
    NAME = VALUE
    NAME = VALUE
    del BOUND
    """),
    (6, r"""
    LIST.append(ITEM)
    LIST.append(LIST)
    LIST.insert(0, ITEM)
    LIST += [ITEM]
    LIST.extend((ITEM, ITEM2))
    LIST.reverse()
    LIST[:] = [ITEM, ITEM2]
    LIST[1:2] = []
    FULL.pop()
    FULL[0] = ITEM
    FULL[-1] = ITEM
    del FULL[0]
    FULL.clear()
    FULL[0], FULL[-1] = FULL[-1], FULL[0]
    FULL[0], FULL2[0] = FULL2[0], FULL[0]
    """),
    (5, r"""
    DICT[KEY] = ITEM
    DICT['own'] = DICT
    DICT.pop(KEY, None)
    DICT[KEY] = DICT.pop('x', ITEM)
    DICT.setdefault(KEY, []).append(ITEM)
    DICT.update(x=ITEM, z=ITEM2)
    DICT.clear()
    NAME = DICT[KEY]
    DICT |= {KEY: ITEM}
    ORDERED.move_to_end('x')
    """),
    (2, r"""
    SET.add(7)
    SET.add((2, 'k'))
    SET.discard(1)
    SET |= {5, 'e'}
    SET &= {1}
    SET.clear()
    """),
    (2, r"""
    DEQUE.append(ITEM)
    DEQUE.appendleft(ITEM)
    DEQUE[0] = ITEM
    DEQUE.rotate(1)
    DEQUE.pop()
    """),
    (2, r"""
    BYTES[0] = 65
    BYTES += b'xy'
    BYTES.extend(b'q')
    BYTES[1:2] = b''
    BYTES[:] = b'new'
    BYTES.reverse()
    """),
    (6, r"""
    INSTANCE.ATTRIBUTE = ITEM
    OWNER.ATTRIBUTE = ITEM
    OWNER.parent = OWNER
    OWNER.parent, OWNER2.child = OWNER2, OWNER
    setattr(OWNER, 'new', ITEM)
    del OWNER.ATTRIBUTE
    OWNER.__dict__['z'] = ITEM
    vars(OWNER).pop('v', None)
    OWNER.__class__ = P
    PARENT.__class__ = Q
    PARENT.add(ITEM)
    PARENT.add(PARENT2)
    PARENT.mark(ITEM)
    ERROR.args = (ITEM,)
    """),
    (4, r"""
    CLASS.STATIC = ITEM
    CLASS.STATIC = LIST
    CLASS.own = CLASS
    CLASS.extra = lambda s: s
    CLASS.add = lambda s, x: s
    CLASS.extra = property(lambda s: 1)
    CLASS.extra = staticmethod(FUNCTION)
    CLASS.extra = FUNCTION
    del CLASS.STATIC
    """),
    (4, r"""
    FUNCTION.note = ITEM
    FUNCTION.calls = FUNCTION
    vars(FUNCTION).clear()
    FUNCTION.__defaults__ = (ITEM,)
    FUNCTION.__kwdefaults__ = {'log': ITEM}
    FUNCTION.__doc__ = 'told'
    FUNCTION.__name__ = 'renamed'
    FUNCTION.__code__ = OPEN.__code__
    CLOSURE.__closure__[0].cell_contents = ITEM
    del CLOSURE.__closure__[0].cell_contents
    """),
    (3, r"""
    NAME = CALL
    CALL
    NAME = next(ITERATOR, None)
    """),
    (2, r"""
    def NAME(x=None, *, y=[]):\n  y.append(x)\n  return NAME
    def NAME(): return ANY
    def NAME(): return BOUND, BOUND2
    class C1:\n  held = ANY\n  def get(s): return s.held\nNAME = C1()
    class C2(P):\n  kinds = [ANY]\nNAME = C2(ANY)
    def make(x):\n  def set_(y):\n    nonlocal x\n    x = y\n  def get(): return x\n  return set_, get\nNAME = make(ANY)
    """),
    (2, r"""
    exec('NAME = NAME2 = BOUND')
    globals()['NAME'] = ITEM
    NAME = eval('ANY_PLAIN')
    exec('def NAME():\\n  global g\\n  g = BOUND\\n(NAME)()')
    put(ITEM)
    put(ITEM)
    drop()
    """),
    (1, r"""
    1 / 0
    NAME
    raise FAILURE(ITEM)
    try:\n  raise FAILURE(ITEM)\nexcept Exception as error:\n  NAME = error
    try:\n  {}['k']\nexcept KeyError as error:\n  raise FAILURE(ITEM) from error
    """),
    (1, r"""
    NAME = random.random()
    NAME = np.random.random()
    NAME = RANDOM.randint(0, 9)
    """),
    (4, r"""
    NAME = DRAWS.random()
    NAME = DRAWS.integers(9)
    NAME = DRAWS.spawn(1)[0]
    DRAWS.shuffle(FULL)
    OLD_DRAWS.normal()
    STREAM.seek(2)
    NAME = STREAM.read(3)
    TEXT.write('new')
    STREAM.truncate(4)
    TYPED.append(2.5)
    TYPED[0] = 7.0
    COUNTER.update('abc')
    COUNTER['a'] -= 1
    CHAIN['new'] = ITEM
    CHAIN.maps.append({'z': ITEM})
    SPACE.v = ITEM
    SLOTTED.x = ITEM
    SLOTTED.y.append(ITEM)
    NAME = LAZY.found
    LAZY.found.append(ITEM)
    NAME = cached(2)
    cached.cache_clear()
    NAME = NAMED._replace(first=ITEM)
    NAME = NAMED.second
    NAME = REFERENCE()
    NAME = KEYS | {1}
    """),
    (8, r"""
    NUMERIC[...] = 1
    NUMERIC[0] = 0
    NUMERIC[-1:] = 1
    NUMERIC += NUMERIC
    NUMERIC += 1
    NUMERIC *= 2
    NUMERIC.fill(1)
    NUMERIC[::-1].sort()
    NUMERIC[:] = NUMERIC[::-1].copy()
    NUMERIC.flags.writeable = False
    NUMERIC.shape = (NUMERIC.size,)
    NUMERIC.shape = (1, NUMERIC.size)
    NAME = NUMERIC * 2
    NAME = VIEW
    NAME = VIEW
    OBJECTS[0] = ITEM
    OBJECTS[-1] = ITEM
    """),
    (5, r"""
    FRAME['c'] = 1.5
    FRAME['d'] = FRAME.index * 2
    FRAME.iloc[0, 0] = 9
    del FRAME[FRAME.columns[-1]]
    FRAME.columns = [f'n{i}' for i in range(len(FRAME.columns))]
    FRAME.attrs['k'] = [1]
    FRAME.drop(index=0, inplace=True)
    FRAME.index = range(1, len(FRAME) + 1)
    """),
]  # fmt: skip

#: Words that stand for one of a few texts.
WORDS = {
    "ATOM": ["0", "1", "True", "False", "None", "1.0", "-0.0", "2", "'x'", "'y'", "b'z'", "3j", "10**20", "1.5"],
    "KEY": ["'x'", "'y'", "1", "True", "(1, 'k')"],
    "ATTRIBUTE": ["v", "x", "a", "new", "kids", "b"],
    "STATIC": ["kinds", "made", "extra", "tag"],
    "NAME": list("abcdeghkmpqrtuvw"),
}
_CALLABLE = (types.FunctionType, types.MethodType, types.BuiltinMethodType, functools.partial)


def _is_notebooks(value: Any) -> bool:
    return type(value).__module__ == "__main__" and not isinstance(value, enum.Enum)


def _is_array(value: Any, kinds: str) -> bool:
    numpy: Any = sys.modules["numpy"]
    return isinstance(value, numpy.ndarray) and value.dtype.kind in kinds


#: Words that stand for an expression which gives such an object.
OBJECTS: dict[str, Callable[[Any], bool]] = {
    "ANY": lambda _: True,
    "LIST": lambda value: isinstance(value, list),
    "FULL": lambda value: isinstance(value, list) and len(value) > 0,
    "DICT": lambda value: isinstance(value, dict),
    "ORDERED": lambda value: isinstance(value, collections.OrderedDict) and "x" in value,
    "SET": lambda value: isinstance(value, set),
    "DEQUE": lambda value: isinstance(value, collections.deque) and len(value) > 0,
    "BYTES": lambda value: isinstance(value, bytearray) and len(value) > 0,
    "INSTANCE": _is_notebooks,
    "OWNER": lambda value: (_is_notebooks(value) or isinstance(value, BaseException)) and hasattr(value, "__dict__"),
    "PARENT": lambda value: _is_notebooks(value) and hasattr(value, "add") and hasattr(value, "kids"),
    "ERROR": lambda value: isinstance(value, BaseException),
    "CLASS": lambda value: isinstance(value, type) and value.__module__ == "__main__",
    "FUNCTION": lambda value: isinstance(value, types.FunctionType),
    "OPEN": lambda value: isinstance(value, types.FunctionType) and not value.__code__.co_freevars,
    "CLOSURE": lambda value: isinstance(value, types.FunctionType) and bool(value.__closure__),
    "CALLABLE": lambda value: isinstance(value, _CALLABLE),
    "ITERATOR": lambda value: isinstance(value, type(iter([]))),
    "RANDOM": lambda value: isinstance(value, random.Random),
    "DRAWS": lambda value: type(value).__name__ == "Generator",
    "OLD_DRAWS": lambda value: type(value).__name__ == "RandomState",
    "STREAM": lambda value: isinstance(value, io.StringIO | io.BytesIO),
    "TEXT": lambda value: isinstance(value, io.StringIO),
    "TYPED": lambda value: isinstance(value, array.array) and len(value) > 0,
    "COUNTER": lambda value: isinstance(value, collections.Counter),
    "CHAIN": lambda value: isinstance(value, collections.ChainMap),
    "SPACE": lambda value: isinstance(value, types.SimpleNamespace),
    "SLOTTED": lambda value: type(value).__name__ == "F",
    "LAZY": lambda value: type(value).__name__ == "lazy",
    "NAMED": lambda value: type(value).__name__ == "N",
    "REFERENCE": lambda value: type(value) is weakref.ref,
    "KEYS": lambda value: isinstance(value, type({}.keys())),
    "ARRAY": lambda value: _is_array(value, "iufbVO"),
    "NUMERIC": lambda value: _is_array(value, "iufb"),
    "OBJECTS": lambda value: _is_array(value, "O") and value.ndim == 1 and value.size > 0,
    "FRAME": lambda value: type(value).__name__ == "DataFrame",
}
