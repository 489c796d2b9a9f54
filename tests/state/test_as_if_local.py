# ruff: noqa: E501  a row is a line
"""Each row runs a cell twice, here and through another process, and nothing may tell the two apart."""

import sys
import types
from typing import Any

import pytest

from .notebook import Notebook, run_cell

#: setup cell, %%gpu cell, expressions to compare
ROWS: dict[str, tuple[str, str, list[str]]] = {
    "a number": ("x = 1", "x += 1", ["x"]),
    "a new name": ("", "y = [1, 2]", ["y"]),
    "bool is not int": ("a = [1]", "a[0] = True", ["a", "type(a[0])"]),
    "minus zero": ("z = [0.0]", "z[0] = -0.0", ["z"]),
    "order of a dict": ("d = {'a': 1, 'b': 2}", "d['a'] = d.pop('a')", ["list(d)"]),
    "swap": ("a, b = [1], [1]\nc = a", "a, b = b, a; c", ["a is c", "b is c", "a, b"]),
    "bound method": ("class C:\n  def __init__(s): s.v = []\n  def m(s, x): s.v.append(x); return len(s.v)\nc = C()\nm = c.m", "r = m(5); c.v", ["r", "c.v", "m.__self__ is c"]),
    "iterator that is spent": ("xs = [1, 2]\nit = iter(xs)", "seen = list(it)", ["seen", "xs.append(3), list(it)"]),
    "iterator at its end": ("xs = [1, 2]\nit = iter(xs)", "seen = [next(it), next(it)]", ["seen", "xs.append(3), list(it)"]),
    "append": ("xs = []", "for i in range(5): xs.append(i)", ["xs", "i"]),
    "alias inside a cell": ("a = [1]\nb = a", "b.append(2); a.append(3)", ["a", "a is b"]),
    "alias of one read": ("a = [1]\nb = {'a': a}", "b['a'].append(2); a", ["a", "b", "b['a'] is a"]),
    "nested alias": ("row = [0] * 3\ngrid = [row] * 3", "grid[0][1] = 5; row", ["grid", "grid[0] is grid[2]", "grid[1] is row"]),
    "cycle": ("a = []\na.append(a)", "a.append(1)", ["len(a)", "a[0] is a"]),
    "new holds old": ("x = [1, 2]", "y = [x, x]", ["y[0] is x", "y[1] is x"]),
    "interior of old": ("x = {'k': [1]}", "y = x['k']", ["y is x['k']", "y"]),
    "unchanged keeps itself": ("x = [1]\nkept = x", "n = len(x)", ["x is kept", "n"]),
    "closure": ("def mk():\n  n = 0\n  def f():\n    nonlocal n; n += 1; return n\n  return f\nf = mk()\ng = f", "f(); f()", ["f()", "g()", "f is g"]),
    "closures share a cell": (
        "def mk():\n  n = [0]\n  v = 0\n  def up():\n    nonlocal v\n    v += 1; n.append(v)\n  def get(): return v, n\n  return up, get\nup, get = mk()",
        "up(); up()",
        ["get()", "up()", "get()"],
    ),
    "global in a function": ("count = 0\ndef inc():\n  global count\n  count += 1\n  return count", "inc(); inc()", ["count", "inc()", "count"]),
    "global creates a name": ("def mk():\n  global fresh\n  fresh = 7", "mk()", ["fresh"]),
    "global deletes a name": ("old = 1\ndef rm():\n  global old\n  del old", "rm()", ["'old' in globals()"]),
    "recursion": ("def fact(n): return 1 if n < 2 else n * fact(n - 1)", "r = fact(10)", ["r", "fact(5)"]),
    "mutual functions": (
        "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)",
        "r = even(10), odd(7)",
        ["r", "even(3)"],
    ),
    "helper redefined": ("def h(): return 1\ndef f(): return h()", "def h(): return 2\nr = f()", ["r", "f()"]),
    "function from the cell": ("k = 3", "def f(x): return x * k\ny = f(2)", ["y", "f(5)", "f.__name__"]),
    "later global is seen": ("k = 3", "def f(x): return x * k", ["f(2)", "globals().__setitem__('k', 9)", "f(2)", "f.__globals__ is globals()"]),
    "defaults": ("def f(a, b=[], *, c={'x': 1}):\n  b.append(a); return b, c", "f(1); f(2)", ["f(3)"]),
    "function attributes": ("def f(): f.calls += 1\nf.calls = 0\ng = f", "f(); f()", ["f.calls", "g.calls"]),
    "annotations": ("def f(a: int, b: 'str' = 'x') -> list: 'doc'\n", "f.__doc__ += '!'", ["f.__annotations__", "f.__doc__"]),
    "functions of a namespace of their own": (
        "own = {}\nexec('x = 1\\ndef f(y):\\n  global n\\n  n = y\\n  return x + y', own)\nf = own['f']",
        "own['x'] = 10; r = f(5)",
        ["r", "f(6)", "own['n']", "f.__globals__ is own", "own['__builtins__'] is __import__('builtins').__dict__"],
    ),
    "functions of a module made by hand": (
        "import types\nm = types.ModuleType('m')\nexec('x = 1\\ndef f(y): return x + y\\nclass C:\\n  def g(self): return f(x)', m.__dict__)\nf, n = m.f, m",
        "m.x = 10; r = f(5), m.C().g()",
        ["r", "f(6)", "m.f is f", "n is m", "f.__globals__ is vars(m)", "m.C().g()", "'__builtins__' in vars(m)"],
    ),
    "module made in the cell": (
        "",
        "import types\nm = types.ModuleType('m')\nexec('x = 1\\ndef f(y): return x + y', m.__dict__)",
        ["m.f(6)", "m.__dict__.update(x=5)", "m.f(6)", "m.f.__globals__ is vars(m)"],
    ),
    "lambda in a dict": ("base = 10\nops = {'add': lambda v: v + base}", "r = ops['add'](1)", ["r", "ops['add'](2)"]),
    "partial": ("import functools\ndef add(a, b): return a + b + off\noff = 100\np = functools.partial(add, 1)", "r = p(2)", ["r", "p(3)"]),
    "decorator": (
        "import functools\nlog = []\ndef logged(f):\n  @functools.wraps(f)\n  def w(*a):\n    log.append(f.__name__); return f(*a)\n  return w\n@logged\ndef sq(x): return x * x",
        "r = sq(4)",
        ["r", "log", "sq.__name__", "sq.__wrapped__(3)"],
    ),
    "context manager": (
        "import contextlib\nlog = []\n@contextlib.contextmanager\ndef cm():\n  log.append('in'); yield 5; log.append('out')",
        "with cm() as v: pass",
        ["v", "log"],
    ),
    "instance": ("class P:\n  def __init__(s, x): s.x = x\np = P(1)", "p.x = 2; q = P(3)", ["p.x", "type(p) is P", "isinstance(q, P)", "q.x"]),
    "class from the cell": ("", "class Q:\n  z = 1\n  def get(s): return s.z\nq = Q()", ["type(q) is Q", "q.get()", "Q.__module__"]),
    "class attribute": ("class P:\n  n = 0\n  @classmethod\n  def up(cls): cls.n += 1\np = P()\nK = P", "P.up(); p.up()", ["P.n", "K is P", "type(p) is P"]),
    "method changed": ("class P:\n  def f(s): return 1\np = P()", "P.f = lambda s: 2", ["p.f()"]),
    "attribute of a class removed": ("class P:\n  a = 1\np = P()", "del P.a", ["hasattr(p, 'a')"]),
    "inheritance and super": (
        "class A:\n  def f(s): return [1]\nclass B(A):\n  def f(s): return super().f() + [2]\nb = B()",
        "r = b.f()\nclass C(B):\n  def f(s): return super().f() + [3]\nc = C()",
        ["r", "c.f()", "isinstance(c, A)", "B.__mro__[1] is A", "b.f()"],
    ),
    "init_subclass": (
        "class Base:\n  kinds = []\n  def __init_subclass__(cls, *, tag, **k): super().__init_subclass__(**k); Base.kinds.append(tag)\nclass X(Base, tag='x'): pass",
        "class Y(Base, tag='y'): pass\nr = X(), Y()",
        ["Base.kinds", "type(r[0]) is X", "type(r[1]) is Y"],
    ),
    "metaclass": (
        "made = []\nclass M(type):\n  def __new__(m, n, b, d): made.append(n); return super().__new__(m, n, b, d)\nclass A(metaclass=M): pass",
        "class B(A): pass\na = A()",
        ["made", "type(A) is M", "type(B) is M", "type(a) is A"],
    ),
    "slots": ("class S:\n  __slots__ = ('a', '__b')\n  def __init__(s): s.a = 1; s.__b = 2\n  def b(s): return s.__b\ns = S()", "s.a = 5", ["s.a", "s.b()", "hasattr(s, '__dict__')"]),
    "dataclass": (
        "from dataclasses import dataclass, field, asdict\n@dataclass\nclass D:\n  x: int\n  y: list = field(default_factory=list)\nd = D(1)",
        "d.y.append(d.x); e = D(5)\n@dataclass\nclass E(D):\n  z: int = 3\nf = E(1)",
        ["d", "e == D(5)", "asdict(d)", "f", "E(2)", "D(9)"],
    ),
    "frozen dataclass with slots": (
        "from dataclasses import dataclass, replace\n@dataclass(frozen=True, slots=True)\nclass D:\n  x: int = 0\nd = D(1)\ns = {d}",
        "s.add(replace(d, x=2))",
        ["sorted(v.x for v in s)", "d in s", "all(type(v) is D for v in s)"],
    ),
    "enum": (
        "import enum\nclass C(enum.Enum):\n  RED = 1\n  BLUE = 2\n  CRIMSON = 1\n  def low(self): return self.name.lower()\nc = C.RED",
        "c = C.BLUE\nr = [C.RED, C(2)]",
        ["c is C.BLUE", "r[0] is C.RED", "c.low()", "C.CRIMSON is C.RED", "list(C)", "C['RED']", "C(2)"],
    ),
    "enum from the cell": (
        "import enum",
        "class K(enum.IntEnum):\n  A = 1\n  B = 2\nk = K.B\nclass F(enum.Flag):\n  X = enum.auto()\n  Y = enum.auto()\nf = F.X | F.Y\nclass S(str, enum.Enum):\n  P = 'p'\ns = S.P",
        ["k is K.B", "k + 1", "f", "f & F.X", "s is S.P", "s == 'p'", "K(1) is K.A", "list(F)", "s.upper()"],
    ),
    "enum with an init": (
        "import enum\nclass Planet(enum.Enum):\n  A = (1.0, 2.0)\n  B = (3.0, 4.0)\n  def __init__(self, m, r): self.m = m; self.r = r\n  @property\n  def g(self): return self.m / self.r",
        "r = Planet.B.g\nd = {Planet.A: 1}",
        ["r", "d[Planet.A]", "Planet.B.r", "Planet((1.0, 2.0)) is Planet.A"],
    ),
    "enum whose members find something": (
        "import enum, functools\nclass P(enum.Enum):\n  A = (1, [2])\n  B = (3, [4])\n  def __init__(self, a, b): self.a = a; self.b = b\n  @functools.cached_property\n  def g(self): return [self.a]\nP.A.g",
        "r = P.B.g; P.A.note = 5; P.B.a = r; del P.B.b",
        ["P.B.g is r", "P.A.note", "P.B.a is r", "hasattr(P.B, 'b')", "P((3, [4])) is P.B", "sorted(vars(P.A))"],
    ),
    "type variables": (
        "from typing import Generic, TypeVar\nT = TypeVar('T', bound='Box')\nclass Box(Generic[T]): pass",
        "U = TypeVar('U', int, str, covariant=True)\nr = T.__module__, T.__bound__",
        ["r", "(U.__module__, U.__constraints__, U.__covariant__, T.__module__)", "Box.__parameters__[0] is T"],
    ),
    "generic class behind a plain base": (
        "from typing import Generic, TypeVar\nclass Base: pass\nT = TypeVar('T')",
        "class Box(Base, Generic[T]):\n  def __init__(s, v): s.v = v\nb = Box[int](3)",
        ["b.v", "type(b) is Box", "Box[str]('x').v", "Box.__parameters__[0] is T", "Box.__orig_bases__[0] is Base"],
    ),
    "subclass that a second base hears of": (
        "heard = []\nclass Base: pass\nclass Hears:\n  def __init_subclass__(cls): heard.append(cls.__name__)",
        "class Both(Base, Hears): pass",
        ["heard", "[one.__name__ for one in Hears.__subclasses__()]", "Both.__bases__ == (Base, Hears)"],
    ),
    "namedtuple": (
        "from collections import namedtuple\nPt = namedtuple('Pt', 'x y', defaults=[0])\np = Pt(1)",
        "q = p._replace(y=5)\nR = namedtuple('R', 'a b')\nr = R(1, 2)",
        ["q", "type(q) is Pt", "r", "r.a", "R(3, 4)", "Pt(7)"],
    ),
    "typed namedtuple": ("from typing import NamedTuple\nclass N(NamedTuple):\n  a: int\n  b: str = 'x'\nn = N(1)", "m = N(2, 'y')", ["m", "type(m) is N", "n._asdict()"]),
    "generic class": ("from typing import Generic, TypeVar\nT = TypeVar('T')\nclass Box(Generic[T]):\n  def __init__(s, v): s.v = v\nb = Box[int](3)", "b.v += 1", ["b.v", "type(b) is Box", "Box[str]('x').v"]),
    "abstract class": (
        "import abc\nclass A(abc.ABC):\n  @abc.abstractmethod\n  def f(self): ...\nclass B(A):\n  def f(self): return 1\nA.register(int)\nb = B()",
        "r = isinstance(b, A), isinstance(3, A)\ntry:\n  A()\nexcept TypeError: r += ('abstract',)",
        ["r", "isinstance(b, A)", "isinstance(4, A)"],
    ),
    "property and static": (
        "class P:\n  def __init__(s): s._v = 1\n  @property\n  def v(s): return s._v\n  @v.setter\n  def v(s, x): s._v = x\n  @staticmethod\n  def st(): return k\nk = 4\np = P()",
        "p.v = 9; r = P.st()",
        ["p.v", "r"],
    ),
    "cached_property": (
        "import functools\nruns = []\nclass P:\n  @functools.cached_property\n  def v(s): runs.append(1); return [1]\np = P()",
        "p.v.append(2)",
        ["p.v", "runs", "P().v"],
    ),
    "lru_cache": ("import functools\n@functools.lru_cache(maxsize=None)\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\ng = fib", "r = fib(30)", ["r", "fib(10)", "g is fib", "fib.__name__"]),
    "cache of an inner function": (
        "import functools\ndef mk():\n  @functools.cache\n  def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\n  return f\nf = mk()",
        "r = f(20)",
        ["r", "f(10)", "f.cache_parameters()"],
    ),
    "weakref": ("import weakref\nclass P: pass\np = P()\nr = weakref.ref(p)", "ok = r() is p\np.x = 1", ["ok", "r() is p", "r().x"]),
    "deletion": ("a = 1\nb = 2", "del a", ["'a' in globals()", "b"]),
    "delete and make again": ("a = [1]", "del a\na = 2", ["a"]),
    "only assigned": ("big = (i for i in 'ab')", "big = 5", ["big"]),
    "assigned before read": ("big = (i for i in 'ab')", "big = [5]\nprint(big)", ["big"]),
    "globals by name": ("a = 1\nb = 2", "globals()['b'] += globals()['a']", ["b"]),
    "eval": ("a = 20", "r = eval('a + 1')", ["r"]),
    "exec": ("a = 20", "exec('a += 1; fresh = a')", ["a", "fresh"]),
    "eval in a function": ("a = 20\ndef f(s): return eval(s)", "r = f('a * 2')", ["r"]),
    "star import": ("a = 2", "from math import *\nr = sqrt(a)", ["r", "sqrt(4)"]),
    "modules": ("import math as m, os.path", "r = m.pi, os.path.join('a', 'b')\nimport json", ["r", "json.dumps(1)", "m.__name__"]),
    "module inside a package": ("import xml.dom.minidom", "r = xml.dom.minidom.parseString('<a/>').documentElement.tagName", ["r"]),
    "module inside a package, in a function": ("import xml.sax.saxutils\ndef f(): return xml.sax.saxutils.escape('<')", "r = f()", ["r"]),
    "module inside a package, in a closure": (
        "def mk():\n  import wsgiref.util as w, wsgiref as p, wsgiref.headers\n  return lambda: p.headers.Headers([]).items()\nf = mk()",
        "r = f()",
        ["r"],
    ),
    "comprehension": ("xs = [1, 2]\nk = 10", "r = [x * k for x in xs]", ["r", "'x' in globals()"]),
    "walrus": ("xs = [3]", "if (n := len(xs)) > 0: xs.append(n)", ["n", "xs"]),
    "f-string": ("who = 'me'", "s = f'{who!r:>6}'", ["s"]),
    "match": ("v = {'k': [1, 2]}", "match v:\n  case {'k': [a, *rest]}: r = a, rest", ["r", "a", "rest"]),
    "exception keeps what was done": ("a = [1]", "a.append(2)\nb = 3\n1 / 0\nb = 4", ["a", "b"]),
    "error of the notebook": ("class MyErr(ValueError):\n  def __init__(self, a, *, b): super().__init__(f'{a}-{b}'); self.a = a; self.b = b", "raise MyErr(1, b=2)", ["MyErr('x', b=1).args"]),
    "error with cause": ("", "try: int('x')\nexcept ValueError as e: raise KeyError('k') from e", ["1"]),
    "os error": ("", "open('/no/such/file')", ["1"]),
    "unicode error": ("", "b'\\xff'.decode()", ["1"]),
    "key error as value": ("errors = []", "try: {}['k']\nexcept KeyError as e: errors.append(e)", ["errors[0].args", "type(errors[0]) is KeyError"]),
    "exit": ("", "raise SystemExit(3)", ["1"]),
    "name absent": ("", "undefined_name", ["'undefined_name' in globals()"]),
    "sets and frozensets": ("s = {1}\nf = frozenset([2])", "s |= f", ["s", "f"]),
    "collections": (
        "from collections import OrderedDict, defaultdict, deque, Counter\nd = defaultdict(list)\nq = deque([1], maxlen=2)\nc = Counter('aab')\no = OrderedDict(a=1, b=2)",
        "d['x'].append(1); q.extend([2, 3]); c.update('b'); o.move_to_end('a')",
        ["d", "d['new']", "q", "c", "o"],
    ),
    "default factory of the notebook": ("from collections import defaultdict\nd = defaultdict(lambda: start)\nstart = 7", "d['a']", ["d['a']", "d['b']"]),
    "bytes": ("b = bytearray(b'abc')\nc = b", "b[0] = 65; b += b'x' * 5000", ["bytes(b[:4])", "len(b)", "b is c if False else True"]),
    "hash of the user": ("def key(x): return x % 7\nclass H:\n  def __init__(s, v): s.v = v\n  def __hash__(s): return key(s.v)\n  def __eq__(s, o): return s.v == o.v\nd = {H(1): 'a'}", "d[H(2)] = 'b'", ["d[H(1)]", "d[H(2)]"]),
    "getattr of the user": ("class W:\n  def __init__(s, t): s.t = t\n  def __getattr__(s, n): return getattr(s.t, n)\nw = W([1])", "w.append(2)", ["w.t", "w.index(2)"]),
    "getstate that has no hash, as that of C++ code": ("class M:\n  __hash__ = None\n  def __get__(s, o, kind): return s if o is None else lambda: {'a': o.a}\nclass G:\n  __getstate__ = M()\n  def __setstate__(s, d): s.a = d['a']\ng = G(); g.a = 1", "g.a", ["g.a"]),
    "getstate of the user": ("class G:\n  def __init__(s): s.a = 1; s.f = lambda: 1\n  def __getstate__(s): return {'a': s.a}\n  def __setstate__(s, d): s.a = d['a']; s.f = lambda: 2\ng = G()", "g.a = 5", ["g.a"]),
    "lock inside": ("import threading\nclass L:\n  def __init__(s): s.lock = threading.RLock(); s.n = 0\n  def up(s):\n    with s.lock: s.n += 1\nl = L()", "l.up()", ["l.n", "l.up()", "l.n"]),
    "callable instance": ("k = 2\nclass F:\n  def __call__(s, x): return x * k\nf = F()", "r = f(4)", ["r"]),
    "nested function named in text": ("def outer():\n  def inner(): return data\n  return inner\ndata = [1]", "r = outer()()", ["r", "r is data"]),
    "pickle inside the cell": ("class P:\n  pass\np = P()\np.a = 1", "import pickle\nq = pickle.loads(pickle.dumps(p))", ["type(q) is P", "q.a"]),
    "iterators": ("it = iter([1, 2, 3])", "n = next(it)", ["n", "next(it)"]),
    "random": ("import random\nrandom.seed(4)", "a = random.random()", ["a", "random.random()"]),
    "random of its own": ("import random\nr = random.Random(1)", "a = r.random()", ["a", "r.random()"]),
    "import inside a function": ("def f():\n  import math\n  return math.floor(v)\nv = 2.5", "r = f()", ["r"]),
    "underscore names": ("_private = [1]\n__x = 2", "_private.append(__x)", ["_private"]),
    "builtin shadowed": ("sum = lambda xs: 'mine'", "r = sum([1])", ["r", "sum([])"]),
    "complex keys": ("d = {(1, 'a'): [1], frozenset([2]): 2}", "d[(1, 'a')].append(3)", ["d"]),
    "a name that is bound and deleted": ("e = 1", "e = 5\ndel e", ["'e' in globals()"]),
    "a name that a cell does not come to delete": ("e, f = 1, 1", "f = 2\nif f > 1: e = 2\nelse:\n  e = 3\n  del e", ["e", "f"]),
    "an error before a name is bound and deleted": ("e = 1", "1 / 0\ne = 5\ndel e", ["e"]),
    "an error before a name is deleted": ("e = 1", "e = 5\n1 / 0\ndel e", ["e"]),
    "a name that a loop binds and that is deleted": ("row = 1", "rows = [row for row in 'ab']\nfor row in rows: pass\ndel row", ["'row' in globals()", "rows"]),
    "views of a dict": ("d = {'a': 1}\nk, v, i = d.keys(), d.values(), d.items()\nheld = [k]", "n = len(k), list(i), list(v)\nd['b'] = 2", ["list(k)", "list(v)", "list(i)", "held[0] is k", "d.update(c=3)", "list(k), list(v), list(i)"]),
    "a view whose dict the cell does not name": ("d = {'a': 1}\nk = d.keys()", "n = len(k)", ["d.update(c=3)", "list(k)", "n"]),
    "a view of a dict of another kind": ("from collections import OrderedDict, defaultdict\nd, o = defaultdict(list), OrderedDict(a=1)\nk, q = d.keys(), o.keys()", "both = [k, q]\nd['x'].append(1)", ["d['y']", "list(k)", "o.update(b=2)", "list(q)", "both[0] is k", "type(q).__name__", "type(d).__name__"]),
    "many levels": ("d = {'a': {'b': {'c': [1]}}}\ninner = d['a']['b']", "d['a']['b']['c'].append(2); inner", ["d", "inner", "inner is d['a']['b']"]),
}  # fmt: skip

NUMERIC_ROWS: dict[str, tuple[str, str, list[str]]] = {
    "array": ("import numpy as np\na = np.arange(2000.0)", "a[3] = -1; b = a * 2", ["a[:5].tolist()", "b.sum()", "a.flags.writeable"]),
    "array and view": ("import numpy as np\na = np.zeros(5000)\nv = a[10:20]", "v[0] = 7; a[11] = 8", ["a[10]", "v[:2].tolist()", "np.shares_memory(a, v)", "v.fill(3)", "a[15]"]),
    "view of one changed": ("import numpy as np\na = np.zeros(50)\nv = a[::-2]", "a[49] = 7; v", ["v[0]", "np.shares_memory(a, v)", "v.strides"]),
    "read-only array": ("import numpy as np\na = np.arange(1000)\na.flags.writeable = False", "b = [a]\nr = a.flags.writeable", ["r", "a.flags.writeable", "b[0] is a"]),
    "fortran order": ("import numpy as np\na = np.asfortranarray(np.arange(6000.0).reshape(60, 100))", "a[1, 2] = 5", ["a[1, 2]", "a.flags.f_contiguous", "a.sum()"]),
    "structured array": ("import numpy as np\na = np.zeros(3, dtype=[('x', 'i4'), ('y', 'f8')])", "a['x'][1] = 4", ["a.tolist()", "a.dtype"]),
    "numpy's generator": ("import numpy as np\ng = np.random.default_rng(3)", "x = g.random()", ["x", "g.random()"]),
    "numpy's global state": ("import numpy as np\nnp.random.seed(3)", "x = np.random.rand()", ["x", "np.random.rand()"]),
    "object array": ("import numpy as np\nx = [1]\na = np.array([x, None, 'b'], dtype=object)", "a[0].append(2); x", ["a.tolist()", "x is a[0]"]),
    "frame": ("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})\nd2 = df", "df['c'] = df['a'] * 2; df.iloc[0, 0] = 9; d2", ["df.to_dict()", "df is d2", "df.dtypes.astype(str).to_dict()"]),
    "figure": ("import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots()", "ax.plot([1, 2]); ax.set_title('t'); fig", ["ax.get_title()", "len(ax.lines)", "ax.figure is fig"]),
    "query": ("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3]})\nlim = 1", "r = df.query('a > @lim').a.tolist()", ["r"]),
    "apply with a function": ("import pandas as pd\nk = 3\ndef f(v): return v * k\ns = pd.Series([1, 2])", "t = s.map(f)", ["t.tolist()"]),
    "categories and dates": ("import pandas as pd\ns = pd.Series(['a', 'b', 'a'], dtype='category')\nt = pd.date_range('2020', periods=3, tz='UTC')", "s = s.cat.add_categories(['z'])\nu = t + pd.Timedelta(days=1)", ["s.cat.categories.tolist()", "u[0].isoformat()"]),
    "estimator": ("from sklearn.linear_model import LogisticRegression\nimport numpy as np\nX = np.arange(20.0).reshape(-1, 1)\ny = (X[:, 0] > 9).astype(int)\nm = LogisticRegression()", "m.fit(X, y)", ["m.predict([[3.0], [15.0]]).tolist()", "m.coef_.round(6).tolist()"]),
}  # fmt: skip

#: Values that only the notebook knows share something with what the cell changed. They see it once values are updated in place.
LATER_ROWS: dict[str, tuple[str, str, list[str]]] = {
    "swap": ("a, b = [1], [1]\nc = a", "a, b = b, a", ["a is c", "b is c", "a, b"]),
    "bound method": ("class C:\n  def __init__(s): s.v = []\n  def m(s, x): s.v.append(x); return len(s.v)\nc = C()\nm = c.m", "r = m(5)", ["r", "c.v", "m.__self__ is c"]),
    "object array": ("import numpy as np\nx = [1]\na = np.array([x, None, 'b'], dtype=object)", "a[0].append(2)", ["a.tolist()", "x is a[0]"]),
    "frame": ("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})\nd2 = df", "df['c'] = df['a'] * 2; df.iloc[0, 0] = 9", ["df.to_dict()", "df is d2", "df.dtypes.astype(str).to_dict()"]),
    "figure": ("import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots()", "ax.plot([1, 2]); ax.set_title('t')", ["ax.get_title()", "len(ax.lines)", "ax.figure is fig"]),
}  # fmt: skip


def outcome(problem: BaseException | None) -> tuple[Any, ...]:
    if problem is None:
        return ()
    cause = problem.__cause__ or problem.__context__
    return (
        type(problem).__qualname__,
        str(problem),
        problem.args,
        repr(sorted(vars(problem))),
        None if cause is None else repr(cause),
    )


def plainly(setup: str, cell: str, checks: list[str], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    module = types.ModuleType("__main__")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "__main__", module)
        run_cell(setup, module.__dict__, "<local>")
        problem: BaseException | None = None
        result = None
        try:
            result = run_cell(cell, module.__dict__, "<cell>")
        except BaseException as error:  # noqa: BLE001  whatever the cell raises is compared
            problem = error
        return [outcome(problem), repr(result), *(repr(eval(check, module.__dict__)) for check in checks)]


def through_two_processes(setup: str, cell: str, checks: list[str], notebook: Notebook) -> list[Any]:
    notebook.local(setup)
    applied = notebook.gpu(cell)
    assert applied.stayed == []
    return [
        outcome(applied.extra.get("error")),
        repr(applied.extra.get("result")),
        *(repr(eval(check, notebook.ns)) for check in checks),
    ]


@pytest.mark.parametrize("row", ROWS)
def test_a_cell_leaves_the_notebook_as_if_it_had_run_there(
    row: str, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert through_two_processes(*ROWS[row], notebook) == plainly(*ROWS[row], monkeypatch)


@pytest.mark.parametrize("row", NUMERIC_ROWS)
def test_a_numeric_cell_leaves_the_notebook_as_if_it_had_run_there(
    row: str, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(NUMERIC_ROWS[row][0].replace("from ", "import ").split()[1].partition(".")[0])
    assert through_two_processes(*NUMERIC_ROWS[row], notebook) == plainly(*NUMERIC_ROWS[row], monkeypatch)


@pytest.mark.parametrize("row", LATER_ROWS)
def test_a_value_that_the_cell_does_not_name_sees_a_change_to_what_it_shares(
    row: str, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert through_two_processes(*LATER_ROWS[row], notebook) == plainly(*LATER_ROWS[row], monkeypatch)
