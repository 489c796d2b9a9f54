"""The whole of a namespace as plain data: what its objects hold, which are one object, which were there before.

Two runs of the same program cannot be told apart by the user exactly if their censuses are equal after every cell.
"""

import array
import builtins
import collections
import datetime as dt
import enum
import functools
import io
import random
import re
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from bulletin.cpython.referrers import behind_proxy
from bulletin.state import names

#: The number of an object, or the type and the text of an atom.
Ref: TypeAlias = int | tuple[str, str]
#: How the user reaches a part from its whole, and the part.
Part: TypeAlias = tuple[str, object]

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_ATOMS = (int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented), range, slice)
_DESCRIPTORS = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
)
#: What Python itself writes into every class, and what `dataclass` writes for its own use.
_MACHINERY = frozenset(
    {"__dict__", "__weakref__", "__module__", "__qualname__", "__firstlineno__", "__static_attributes__"}
    | {"__slots__", "__slotnames__", "__match_args__", "__dataclass_fields__", "__dataclass_params__"}
)
#: Names that Python adds to a module: which warnings it has shown, and where it comes from.
_MODULES_OWN = frozenset({"__warningregistry__", "__file__"})


class Unknown(TypeError):
    """A value of a kind that the census cannot describe: it would go unchecked."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One object: where it was found first in this census, what it says of itself, what it refers to."""

    path: str
    content: tuple[object, ...]
    parts: tuple[tuple[str, Ref], ...]

    @property
    def kind(self) -> str:
        """The name of its type, or of the type that it extends."""
        return str(self.content[0])


@dataclass(frozen=True, slots=True)
class Form:
    """A namespace after a cell. `entries` are in the order in which they were met."""

    roots: Mapping[str, Ref]
    entries: Mapping[int, Entry]
    ambient: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two forms part: the path to it, and what each says there.

    `kind` is the same for differences that may have one cause; `number` is of the object that was expected there.
    """

    kind: str
    path: str
    expected: str
    found: str
    number: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} at {self.path}\n    expected {self.expected}\n    found    {self.found}"


@dataclass
class Census:
    """Numbers objects in the order of their first sight, and keeps them alive: a number is one object for good."""

    numbers: dict[int, int] = field(default_factory=dict)
    kept: list[object] = field(default_factory=list)

    def take(self, namespace: dict[str, Any], extra: Mapping[str, object]) -> Form:
        """All that a user can reach from the names and from `extra` (the outcome of a cell).

        Raises
        ------
        Unknown
            If there is a kind of value that cannot be described.
        """
        named = {name: namespace[name] for name in sorted(names.users(namespace)) if name not in _MODULES_OWN}
        queue: collections.deque[tuple[int, str, Any]] = collections.deque()
        visited: set[int] = set()

        def refer(path: str, value: Any) -> Ref:
            if (atom := _atom(value)) is not None:
                return atom
            number = self.numbers.get(id(value))
            if number is None:
                number = self.numbers[id(value)] = len(self.kept)
                self.kept.append(value)
            if number not in visited:
                visited.add(number)
                queue.append((number, path, value))
            return number

        roots = {name: refer(name, value) for name, value in {**named, **extra}.items()}
        entries: dict[int, Entry] = {}
        arrays: list[tuple[int, Any]] = []
        while queue:
            number, path, value = queue.popleft()
            content, parts = _describe(value, namespace)
            entries[number] = Entry(path, content, tuple((label, refer(path + label, part)) for label, part in parts))
            if _is_array(value) and value.size:
                arrays.append((number, value))
        places = {id(array): place for place, (_, array) in enumerate(arrays)}
        for (number, one), (region, start) in zip(arrays, _memory(arrays), strict=True):
            old = entries[number]
            base = None if one.base is None else places.get(id(one.base), "out of reach")
            memory = f"memory {region} from byte {start}, its base is {base}"
            entries[number] = Entry(old.path, (*old.content, memory), old.parts)
        numpy: Any = sys.modules["numpy"]
        return Form(roots, entries, (random.getstate(), repr(numpy.random.get_state())))


def difference(expected: Form, found: Form) -> Difference | None:
    """The first difference in the order of the walk; None if nobody can tell the two apart."""
    for name in sorted(expected.roots.keys() | found.roots.keys()):
        one, other = expected.roots.get(name), found.roots.get(name)
        if one != other:
            return _parted("name", name, (one, expected), (other, found))
    for number, entry in expected.entries.items():
        twin = found.entries.get(number)
        if twin is None or entry.content != twin.content:
            here = "nothing" if twin is None else repr(twin.content)
            return Difference(f"content of {entry.kind}", entry.path, repr(entry.content), here)
        labels, labels_found = ([label for label, _ in side.parts] for side in (entry, twin))
        if labels != labels_found:
            return Difference(f"parts of {entry.kind}", entry.path, repr(labels), repr(labels_found))
        for (label, ref), (_, ref_found) in zip(entry.parts, twin.parts, strict=True):
            if ref != ref_found:
                return _parted(f"part of {entry.kind}", entry.path + label, (ref, expected), (ref_found, found))
    if expected.ambient != found.ambient:
        return Difference("random numbers", "random", "the state of a local run", "another state")
    return None


def _parted(place: str, path: str, expected: tuple[Ref | None, Form], found: tuple[Ref | None, Form]) -> Difference:
    match expected[0], found[0]:
        case None, _:
            kind = f"{place} should be absent"
        case _, None:
            kind = f"{place} is missing"
        case int(number), int():
            kind = f"{place} is another {expected[1].entries[number].kind}"
        case _:
            kind = f"{place} has another value"
    number_expected = expected[0] if isinstance(expected[0], int) else None
    return Difference(kind, path, _spell(*expected), _spell(*found), number_expected)


def _spell(ref: Ref | None, form: Form) -> str:
    if not isinstance(ref, int):
        return str(ref)
    return f"object {ref}, a {form.entries[ref].kind}, also {form.entries[ref].path}"


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _is_notebooks(definition: Any) -> bool:
    """True for functions and classes that no module holds."""
    found: Any = sys.modules.get(definition.__module__) if definition.__module__ != "__main__" else None
    for part in definition.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is not definition


def _atom(value: Any) -> tuple[str, str] | None:
    """Values whose identity nobody relies on, and what every process has: modules, and what they define."""
    kind = type(value)
    if kind in _ATOMS:
        return kind.__name__, _ADDRESS.sub("0x", repr(value))
    if kind is tuple and not value:
        return "tuple", "()"
    if kind is types.ModuleType:
        return "module", value.__name__
    if isinstance(value, type) and not _is_notebooks(value):
        return "class", f"{value.__module__}.{value.__qualname__}"
    if kind is types.FunctionType and not _is_notebooks(value):
        return "function", f"{value.__module__}.{value.__qualname__}"
    if kind is types.BuiltinFunctionType and (value.__self__ is None or type(value.__self__) is types.ModuleType):
        return "function", f"{value.__module__}.{value.__qualname__}"
    if kind in _DESCRIPTORS:
        return kind.__name__, value.__name__
    if kind.__module__ == "dataclasses":
        return kind.__module__, kind.__name__
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic | numpy.dtype | numpy.ufunc):
        return kind.__name__, repr(value)
    return None


def _describe(value: Any, namespace: dict[str, Any]) -> tuple[tuple[object, ...], list[Part]]:
    """What the object says of itself, and its parts."""
    kind = type(value)
    if kind is types.FunctionType:
        return _function(value, namespace)
    if isinstance(value, type):
        return ("class", value.__qualname__), list(_class_parts(value))
    if _is_array(value):
        return _array(value)
    if _is_pandas(value):
        return _frame(value)
    if kind.__module__.startswith("numpy.random"):
        return _generator(value)
    if isinstance(value, enum.Enum):
        return (kind.__name__, value.name), [(".__class__", kind), *_attributes(value)]
    if isinstance(value, random.Random):
        return (kind.__name__, hash(value.getstate())), []
    teller = _TELLERS.get(kind)
    if teller is not None:
        content, parts = teller(value)
        return (kind.__name__, *content), parts
    base = next((base for base in kind.__mro__ if base in _TELLERS or base is BaseException), object)
    if base is object and kind.__module__ != "__main__":
        raise Unknown(f"a {kind.__module__}.{kind.__qualname__}")
    content, parts = _exception(value) if base is BaseException else _TELLERS.get(base, _nothing)(value)
    return (base.__name__, *content), [(".__class__", kind), *parts, *_attributes(value)]


def _attributes(value: Any) -> Iterator[Part]:
    attributes = getattr(value, "__dict__", None)
    if attributes is not None:
        yield ".__dict__", attributes
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in {"__dict__", "__weakref__"}:
                mangled = f"_{cls.__name__.lstrip('_')}{slot}" if slot.startswith("__") else slot
                if hasattr(value, mangled):
                    yield f".{mangled}", getattr(value, mangled)


def _nothing(_: Any) -> tuple[tuple[object, ...], list[Part]]:
    return (), []


def _sequence(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    return (getattr(value, "maxlen", None),), [(f"[{place}]", part) for place, part in enumerate(list(iter(value)))]


def _exact_sequence(base: type) -> Callable[[Any], tuple[tuple[object, ...], list[Part]]]:
    """Past what a subclass makes of iteration."""
    return lambda value: ((), [(f"[{place}]", part) for place, part in enumerate(base.__iter__(value))])  # type: ignore[attr-defined]


def _mapping(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    parts: list[Part] = []
    kind = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict
    for place, (key, part) in enumerate(kind.items(value)):
        parts += [(f".keys()[{place}]", key), (f"[{_ADDRESS.sub('0x', repr(key))}]", part)]
    if isinstance(value, collections.defaultdict):
        parts.append((".default_factory", value.default_factory))
    return (), parts


def _unordered(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    """Elements are atoms and tuples of atoms, so their texts tell them apart."""
    return (sorted(map(repr, value)),), []


def _exception(error: BaseException) -> tuple[tuple[object, ...], list[Part]]:
    parts: list[Part] = [(f".args[{place}]", part) for place, part in enumerate(error.args)]
    parts += [(".__cause__", error.__cause__), (".__context__", error.__context__)]
    return (error.__suppress_context__,), parts


def _iterator(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    _, (whole,), *place = value.__reduce__()
    return tuple(place), [(".over", whole)] if place else []


def _stream(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    return (("closed",), []) if value.closed else ((value.getvalue(), value.tell()), [])


def _generator(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    """Numpy's: their state, and that of the bits that they draw from."""
    kind = type(value).__name__
    if kind == "RandomState":
        return (kind, repr(value.get_state(legacy=False))), []
    if hasattr(value, "bit_generator"):
        return (kind,), [(".bit_generator", value.bit_generator)]
    if hasattr(value, "seed_seq"):
        return (kind, repr(value.state)), [(".seed_seq", value.seed_seq)]
    return (kind, repr(value.state)), []


def _cache(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    return (repr(value.cache_parameters()),), [(".__wrapped__", value.__wrapped__), (".__dict__", value.__dict__)]


def _partial(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    parts: list[Part] = [(f".args[{place}]", part) for place, part in enumerate(value.args)]
    return (), [(".func", value.func), *parts, (".keywords", value.keywords), (".__dict__", value.__dict__)]


def _function(value: Any, namespace: dict[str, Any]) -> tuple[tuple[object, ...], list[Part]]:
    globals_are = "the namespace" if value.__globals__ is namespace else "others"
    content = ("function", value.__qualname__, value.__module__, value.__doc__, globals_are, _code(value.__code__))
    parts: list[Part] = [(f".__defaults__[{i}]", part) for i, part in enumerate(value.__defaults__ or ())]
    parts += [(f".__kwdefaults__[{key!r}]", part) for key, part in (value.__kwdefaults__ or {}).items()]
    parts += [(f".__annotations__[{key!r}]", part) for key, part in value.__annotations__.items()]
    parts += [(f".__closure__[{i}]", cell) for i, cell in enumerate(value.__closure__ or ())]
    parts += [(f".{key}", part) for key, part in value.__dict__.items()]
    return content, parts


def _code(code: types.CodeType) -> tuple[object, ...]:
    """Equal where the text of the function is; files differ on the two sides."""
    constants = tuple(_code(part) if isinstance(part, types.CodeType) else repr(part) for part in code.co_consts)
    return code.co_name, code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars


def _cell(cell: Any) -> tuple[tuple[object, ...], list[Part]]:
    try:
        return ("filled",), [(".cell_contents", cell.cell_contents)]
    except ValueError:
        return ("empty",), []


def _class_parts(value: type) -> Iterator[Part]:
    yield ".__class__", type(value)
    for place, base in enumerate(value.__bases__):
        yield f".__bases__[{place}]", base
    for name, part in vars(value).items():
        if name not in _MACHINERY and (name, part) != ("__doc__", None):
            yield f".__dict__[{name!r}]", part


def _array(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    steps = tuple(step for step, length in zip(value.strides, value.shape, strict=True) if length > 1)
    if value.size == 0:
        steps = ()
    content = ("array", str(value.dtype), value.shape, steps, bool(value.flags.writeable))
    if not value.dtype.hasobject:
        return (*content, value.tobytes().hex()), []
    return content, [(f".flat[{place}]", part) for place, part in enumerate(value.flat)]


def _memory(arrays: list[tuple[int, Any]]) -> list[tuple[int, int]]:
    """For each array, the stretch of memory that it lies in and where; a stretch ends where no array reaches on."""
    numpy: Any = sys.modules.get("numpy")
    spans = sorted((*numpy.lib.array_utils.byte_bounds(array), number) for number, array in arrays)
    stretch: dict[int, int] = {}
    low = end = -1
    for start, stop, number in spans:
        low, end = (start, stop) if start >= end else (low, max(end, stop))
        stretch[number] = low
    known: dict[int, int] = {}
    return [
        (known.setdefault(stretch[number], len(known)), array.__array_interface__["data"][0] - stretch[number])
        for number, array in arrays
    ]


def _is_pandas(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series)


def _frame(value: Any) -> tuple[tuple[object, ...], list[Part]]:
    columns = [value] if value.ndim == 1 else [value.iloc[:, place] for place in range(value.shape[1])]
    content = (
        type(value).__name__,
        [repr(column.name) for column in columns],
        [str(column.dtype) for column in columns],
        [list(map(repr, column.tolist())) for column in columns],
        (str(value.index.dtype), repr(value.index.name), list(map(repr, value.index.tolist()))),
    )
    return content, [(".attrs", value.attrs)]


class _Pair(NamedTuple):
    first: int


_TELLERS: dict[type, Callable[[Any], tuple[tuple[object, ...], list[Part]]]] = {
    list: _exact_sequence(list),
    tuple: _exact_sequence(tuple),
    collections.deque: _sequence,
    dict: _mapping,
    collections.OrderedDict: _mapping,
    collections.defaultdict: _mapping,
    set: _unordered,
    frozenset: _unordered,
    bytearray: lambda value: ((bytes(value),), []),
    types.CellType: _cell,
    types.MethodType: lambda value: ((), [(".__self__", value.__self__), (".__func__", value.__func__)]),
    types.BuiltinMethodType: lambda value: ((value.__name__,), [(".__self__", value.__self__)]),
    functools.partial: _partial,
    staticmethod: lambda value: ((), [(".__func__", value.__func__)]),
    classmethod: lambda value: ((), [(".__func__", value.__func__)]),
    property: lambda value: ((), [(".fget", value.fget), (".fset", value.fset), (".fdel", value.fdel)]),
    type(iter([])): _iterator,
    io.StringIO: _stream,
    io.BytesIO: _stream,
    array.array: lambda value: ((value.typecode, value.tobytes()), []),
    types.SimpleNamespace: lambda value: ((), [(".__dict__", vars(value))]),
    collections.Counter: _mapping,
    collections.ChainMap: lambda value: ((), [(".maps", value.maps)]),
    dt.datetime: lambda value: ((repr(value),), []),
    type({}.keys()): lambda value: ((list(map(repr, value)),), [(".mapping", behind_proxy(value.mapping))]),
    type(_Pair.first): lambda value: ((value.__reduce__()[1],), []),
    functools.cached_property: lambda value: ((value.attrname,), [(".func", value.func)]),
    type(functools.lru_cache(_nothing)): _cache,
    weakref.ref: lambda value: ((), [("()", value())]),
    **{
        error: lambda value: (_exception(value)[0], [*_exception(value)[1], *_attributes(value)])
        for error in vars(builtins).values()
        if isinstance(error, type) and issubclass(error, BaseException)
    },
}
