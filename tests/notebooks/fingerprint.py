"""What the variables of a notebook are, as text by path, so that two kernels can be compared. It runs inside a kernel.

A line stands for every object that is not a mere value: `model.layers[0]` -> its type and what it holds. What was met
before is named by the path where it was met first, so the lines also say which names and which insides are one object,
and which arrays and tensors are one memory. Nothing that a new process changes is in it: addresses, times, caches.
"""

import collections
import copy
import datetime as dt
import decimal
import fractions
import functools
import hashlib
import io
import itertools
import os
import pathlib
import random
import re
import sys
import types
import uuid
import warnings
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

_LONG = 300
_AT = "\x00"
#: Of a class: it was made by a class statement, not by C.
_HEAP_TYPE = 1 << 9
#: Of files: the same bytes whoever writes them.
_TEXT_FILES = {".txt", ".csv", ".json", ".md", ".py", ".log", ".tsv"}
_VALUES = (
    type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented), decimal.Decimal,
    fractions.Fraction, dt.date, dt.time, dt.timedelta, dt.tzinfo, pathlib.PurePath, uuid.UUID,
)  # fmt: skip
#: What Python or a library keeps in classes and objects for itself.
_PRIVATE = {
    "__dict__", "__weakref__", "__slotnames__", "_abc_impl", "__firstlineno__", "__annotations_cache__",
    "__annotate_func__",
}  # fmt: skip
#: Attributes that hold an address (scikit-learn), and by which IPython asks an exception to show itself.
_OF_ONE_PROCESS = {"_stop_words_id", "_render_traceback_"}
_OPAQUE = {
    "_thread.lock",
    "_thread.RLock",
    "threading.Event",
    "threading.Condition",
    "_thread._local",
    "_io.TextIOWrapper",
}


def name_of(kind: type) -> str:
    """A class with its module."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def digest(data: Any) -> str:
    """Short, equal for equal bytes."""
    return hashlib.sha256(data).hexdigest()[:16]


def short(text: str) -> str:
    """A text as it is, or its size and digest."""
    return text if len(text) <= _LONG else f"{text[:40]}... {len(text)} characters {digest(text.encode())}"


def of_code(code: types.CodeType) -> str:
    """What a function does, wherever its lines stand."""
    parts = [code.co_name, str(code.co_argcount), str(code.co_flags), repr(code.co_names), repr(code.co_varnames)]
    parts += [repr(code.co_freevars), digest(code.co_code)]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            parts.append(of_code(constant))
        elif isinstance(constant, frozenset):
            parts.append(repr(sorted(map(repr, constant))))
        else:
            parts.append(repr(constant))
    return digest("\n".join(parts).encode())


class Fingerprint:
    """Walks from the names to everything they hold, breadth first: the shortest path names an object."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self.lines: dict[str, str] = {}
        self._first: dict[int, str] = {}
        self._regions: dict[int, str] = {}
        self._lowest: dict[str, int] = {}
        self._alive: list[Any] = []  # so that no id is given twice
        self._queue: collections.deque[tuple[str, Any]] = collections.deque()

    def add(self, name: str, value: object) -> None:
        """One more root. Call `walk` when all are there."""
        text = self.text(value, name)
        if text != f"<{name}>":
            self.lines[name] = text

    def walk(self) -> None:
        """Describe all that was reached."""
        while self._queue:
            path, value = self._queue.popleft()
            self.lines[path] = f"{name_of(type(value))} {self.describe(value, path)}"
        self.lines = {path: self._placed(line) for path, line in self.lines.items()}

    def text(self, value: Any, path: str) -> str:
        """A value as text, or the path at which the object is described."""
        plain = self.value(value)
        if plain is not None:
            return plain
        if id(value) not in self._first:
            self._first[id(value)] = path
            self._alive.append(value)
            self._queue.append((path, value))
        return f"<{self._first[id(value)]}>"

    def value(self, value: Any, depth: int = 3) -> str | None:
        """The text of what has no identity worth the name, else None. A small tuple of values is a value."""
        kind = type(value)
        if kind in weakref.ProxyTypes:
            return "proxy"  # it answers for what it stands for, and raises where that is gone
        if kind is tuple and depth and len(value) <= _LONG:
            texts = [self.value(element, depth - 1) for element in value]
            return None if None in texts else f"({', '.join(map(str, texts))})"
        if kind in _VALUES or (isinstance(value, _VALUES) and kind.__module__ != "__main__" and not is_enum(value)):
            return short(f"{name_of(kind)} {value!r}")
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, type) and value.__module__ != "__main__":
            return f"class {name_of(value)}"
        if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType | type | None):
            return f"built-in {value.__qualname__}"
        if isinstance(value, types.FunctionType) and value.__module__ != "__main__":
            return f"function {value.__module__}.{value.__qualname__}"
        if isinstance(value, types.MethodDescriptorType | types.WrapperDescriptorType | types.GetSetDescriptorType):
            return f"slot {value.__qualname__}"
        if isinstance(value, types.MemberDescriptorType):
            return f"slot {value.__name__}"
        if isinstance(value, re.Pattern):
            return short(repr(value))
        if kind.__module__.partition(".")[0] in {"numpy", "pandas", "torch"}:
            return of_library_value(value)
        return None

    # --- one object

    def describe(self, value: Any, path: str) -> str:
        """What it is and what it holds."""
        kind = type(value)
        if name_of(kind) in _OPAQUE:
            return f"closed {value.closed} {value.name}" if isinstance(value, io.TextIOWrapper) else ""
        for describer in (self._of_python, self._of_numpy, self._of_pandas, self._of_torch, self._of_matplotlib):
            text = describer(value, path)
            if text is not None:
                return text
        return self._of_instance(value, path)

    def _all(self, path: str, parts: Mapping[str, Any]) -> str:
        return " ".join(f"{key}={self.text(part, f'{path}.{key}')}" for key, part in parts.items())

    def _of_python(self, value: Any, path: str) -> str | None:
        if isinstance(value, types.FunctionType):
            cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
            own = f"is_of_notebook={value.__globals__ is self._namespace} "
            parts = {"defaults": value.__defaults__, "kwdefaults": value.__kwdefaults__, "doc": value.__doc__}
            parts |= {"annotations": value.__annotations__, "dict": value.__dict__, "qualname": value.__qualname__}
            return own + of_code(value.__code__) + " " + self._all(path, parts) + " " + self._all(path, cells)
        if isinstance(value, types.CellType):
            try:
                return self.text(value.cell_contents, f"{path}.cell_contents")
            except ValueError:
                return "empty"
        if isinstance(value, type):
            held = {key: part for key, part in vars(value).items() if key not in _PRIVATE}
            return f"bases={self.text(value.__bases__, f'{path}.__bases__')} {self._all(path, held)}"
        if isinstance(value, types.MethodType):
            return self._all(path, {"self": value.__self__, "func": value.__func__})
        if isinstance(value, types.BuiltinFunctionType):
            return f"{value.__name__} of {self.text(value.__self__, f'{path}.__self__')}"
        if isinstance(value, staticmethod | classmethod):
            return self._all(path, {"func": value.__func__})
        if isinstance(value, property):
            return self._all(path, {"fget": value.fget, "fset": value.fset, "fdel": value.fdel})
        if isinstance(value, functools.cached_property):
            return self._all(path, {"func": value.func})
        if isinstance(value, functools.partial):
            return self._all(path, {"func": value.func, "args": value.args, "keywords": value.keywords})
        if isinstance(value, functools._lru_cache_wrapper):
            return self._all(path, {"wrapped": value.__wrapped__, "dict": vars(value)})  # what it remembers is a cache
        if isinstance(value, Iterator) and type(value).__module__ in {"builtins", "itertools"}:
            return self._of_iterator(value, path)
        if isinstance(value, types.MappingProxyType):
            return self._of_items(dict(value), path)
        if isinstance(value, weakref.ref):
            return self.text(value(), f"{path}()")
        if isinstance(value, random.Random):
            return digest(repr(value.getstate()).encode())
        if isinstance(value, types.CoroutineType):
            return value.__qualname__
        if isinstance(value, re.Match):
            return repr(value)
        return None

    def _of_iterator(self, value: Iterator[Any], path: str) -> str:
        """What it gives next, asked of a copy: a generator has none."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that iterators can be copied is deprecated
                ahead = copy.copy(value)
        except TypeError:
            return getattr(value, "__qualname__", "")
        return self._of_elements(list(itertools.islice(ahead, 3)), f"{path}.next")

    def _of_items(self, value: Mapping[Any, Any], path: str) -> str:
        texts = []
        kind = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict  # each has its own order
        for place, (key, held) in enumerate(kind.items(value) if isinstance(value, kind) else value.items()):
            step = repr(key) if isinstance(key, str | int | float | bool | tuple) else f"#{place}"
            key_text = self.text(key, f"{path}.key({step})")
            texts.append(f"{key_text}: {self.text(held, f'{path}[{step}]')}")
        return "{" + short(", ".join(texts)) + "}"

    def _of_elements(self, value: Any, path: str) -> str:
        if isinstance(value, set | frozenset):
            texts = sorted(self.value(element) or f"{name_of(type(element))} {order(element)}" for element in value)
            for place, element in enumerate(sorted(value, key=order)):
                self.text(element, f"{path}.element({place})")
        else:
            elements = list.__iter__(value) if isinstance(value, list) else iter(value)
            texts = [self.text(element, f"{path}[{place}]") for place, element in enumerate(elements)]
        return "[" + short(", ".join(texts)) + "]"

    def _of_instance(self, value: Any, path: str) -> str:
        parts, is_known = [], False
        if isinstance(value, dict | list | tuple | set | frozenset | collections.deque):
            is_known = True
            parts.append(self._of_items(value, path) if isinstance(value, dict) else self._of_elements(value, path))
        if isinstance(value, collections.defaultdict):
            parts.append(self._all(path, {"default_factory": value.default_factory}))
        if isinstance(value, collections.deque):
            parts.append(f"maxlen={value.maxlen}")
        if isinstance(value, bytearray):
            return repr(bytes(value))
        if isinstance(value, io.StringIO | io.BytesIO):
            return "closed" if value.closed else f"{value.getvalue()!r} at {value.tell()}"
        if isinstance(value, BaseException):
            is_known = True
            held = {"args": value.args, "cause": value.__cause__, "context": value.__context__}
            parts.append(self._all(path, held))
        own = own_dict(value)
        if own is not None:
            is_known = True
            shown = {key: part for key, part in own.items() if key not in _OF_ONE_PROCESS}
            if type(value).__module__ != "__main__":  # libraries put their attributes back in an order of their own
                shown = dict(sorted(shown.items(), key=lambda item: str(item[0])))
            parts.append(self._all(path, shown))
        slots = dict(slots_of(value))
        if slots:
            is_known = True
            parts.append(self._all(path, slots))
        if not is_known:
            parts.append(self._of_reduced(value, path))
        return " ".join(filter(None, parts))

    def _of_reduced(self, value: Any, path: str) -> str:
        try:
            reduced = value.__reduce_ex__(4)
        except Exception as error:  # noqa: BLE001  whatever it has against being described
            return f"cannot be reduced: {type(error).__name__}"
        if isinstance(reduced, str):
            return reduced
        self._alive.append(reduced)
        return " ".join(self.text(part, f"{path}.reduced[{place}]") for place, part in enumerate(reduced[:3]))

    # --- libraries

    def _memory(self, owner: int, low: int, first: int, path: str) -> str:
        """Which memory an array lies in, and where: seen from its lowest array, for what lies below none can see."""
        name = self._regions.setdefault(owner, path)
        self._lowest[name] = min(low, self._lowest.get(name, low))
        return f"memory={name}+{_AT}{first}{_AT}"

    def _placed(self, text: str) -> str:
        """Addresses as distances."""
        return re.sub(
            rf"memory=(.*?)\+{_AT}(\d+){_AT}", lambda at: f"memory={at[1]}+{int(at[2]) - self._lowest[at[1]]}", text
        )

    def _of_numpy(self, value: Any, path: str) -> str | None:
        numpy: Any = sys.modules.get("numpy")
        if numpy is None:
            return None
        if isinstance(value, numpy.random.RandomState | numpy.random.BitGenerator):
            state = value.get_state() if isinstance(value, numpy.random.RandomState) else value.state
            return digest(repr(plain(state)).encode())
        if isinstance(value, numpy.random.Generator):
            return self._all(path, {"bit_generator": value.bit_generator})
        if not isinstance(value, numpy.ndarray):
            return None
        owner = value
        while isinstance(owner.base, numpy.ndarray):
            owner = owner.base
        low = numpy.lib.array_utils.byte_bounds(value)[0]
        form = f"{value.dtype} {value.shape} writeable={value.flags.writeable}"
        if value.size:
            form += f" strides={value.strides} {self._memory(owner.ctypes.data, low, value.ctypes.data, path)}"
        if value.dtype.hasobject:
            return f"{form} {self._of_elements(value.ravel().tolist(), path)}"
        if value.dtype.names:
            return f"{form} {digest(repr(value.tolist()).encode())}"
        if value.size <= 20:
            return f"{form} {value.tolist()}"
        return f"{form} {digest(numpy.ascontiguousarray(value).tobytes())}"

    def _of_pandas(self, value: Any, path: str) -> str | None:
        pandas: Any = sys.modules.get("pandas")
        if pandas is None:
            return None
        if isinstance(value, pandas.DataFrame):
            columns = [self._column(value.iloc[:, place].array, path) for place in range(value.shape[1])]
            return f"{self._index(value.columns)} rows {self._index(value.index)} {value.attrs} {columns}"
        if isinstance(value, pandas.Series):
            index = self._index(value.index)
            return f"name={value.name!r} {self._column(value.array, path)} rows {index} {value.attrs}"
        if isinstance(value, pandas.Index):
            return self._index(value)
        if isinstance(value, pandas.api.extensions.ExtensionArray):
            return self._column(value, path)
        return None

    def _column(self, array: Any, path: str) -> str:
        texts = [self.value(element) or self.text(element, f"{path}({i})") for i, element in enumerate(array)]
        return f"{array.dtype!r} {short(', '.join(texts))}"

    def _index(self, index: Any) -> str:
        pandas = sys.modules["pandas"]
        kind = f"{type(index).__name__} {list(index.names)} {getattr(index, 'freq', None)}"
        if isinstance(index, pandas.MultiIndex):
            return f"{kind} {short(repr(index.tolist()))} {[list(level) for level in index.levels]}"
        return f"{kind} {index.dtype!r} {short(repr(list(index)))}"

    def _of_torch(self, value: Any, path: str) -> str | None:
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return None
        if isinstance(value, torch.Generator):
            return digest(value.get_state().numpy().tobytes())
        if not isinstance(value, torch.Tensor):
            return None
        plain_tensor = value.detach()
        if value.is_meta or value.is_quantized or value.layout != torch.strided:
            return f"{value.dtype} {tuple(value.shape)} {plain_tensor!r}"
        storage = plain_tensor.untyped_storage()
        first = plain_tensor.data_ptr()
        where = self._memory(storage.data_ptr(), first, first, path) if value.numel() else "memory=none"
        form = f"{value.dtype} {tuple(value.shape)} strides={value.stride()} {value.device} {where}"
        form += f" requires_grad={value.requires_grad} leaf={value.is_leaf} by={type(value.grad_fn).__name__}"
        is_short = value.dtype == torch.bfloat16  # numpy has no such numbers
        numbers = (plain_tensor.float() if is_short else plain_tensor).contiguous().numpy()
        content = f"{numbers.tolist()}" if numbers.size <= 20 else digest(numbers.tobytes())
        grad = self.text(value.grad, f"{path}.grad") if value.is_leaf else "None"
        return f"{form} grad={grad} {content} {self._all(path, vars(value))}"

    def _of_matplotlib(self, value: Any, path: str) -> str | None:
        artist: Any = sys.modules.get("matplotlib.artist")
        if artist is None:
            return None
        if isinstance(value, sys.modules["matplotlib.container"].Container):
            return self._of_elements(value, path)
        if not isinstance(value, artist.Artist):
            return None
        figure: Any = sys.modules["matplotlib.figure"]
        if isinstance(value, figure.Figure):
            drawn = io.BytesIO()
            value.savefig(drawn, format="raw", dpi=50)
            axes = self._of_elements(value.axes, f"{path}.axes")
            return f"{value.get_size_inches().tolist()} {digest(drawn.getvalue())} axes={axes}"
        owner = value.get_figure()
        return f"of {self.text(owner, f'{path}.figure')}" if owner is not None else "of no figure"


def of_library_value(value: Any) -> str | None:
    """The text of numbers, types and the like of numpy, pandas and torch, else None."""
    numpy, pandas, torch = (sys.modules.get(name) for name in ("numpy", "pandas", "torch"))
    kinds: list[type] = []
    if numpy is not None:
        kinds += [numpy.generic, numpy.dtype, numpy.ufunc]
    if pandas is not None:
        kinds += [type(pandas.NaT), type(pandas.NA), pandas.Timestamp, pandas.Timedelta, pandas.Period, pandas.Interval]
        kinds += [pandas.api.extensions.ExtensionDtype, pandas.offsets.BaseOffset]
    if torch is not None:
        kinds += [torch.dtype, torch.device, torch.Size, torch.layout]
    return short(f"{name_of(type(value))} {value!r}") if isinstance(value, tuple(kinds)) else None


def is_enum(value: object) -> bool:
    """Whether it is a member of an Enum of the notebook: one object, whatever its value."""
    return hasattr(type(value), "__members__") and type(value).__module__ == "__main__"


def order(value: object) -> str:
    """Where an element of a set stands; equal texts stand in any order."""
    return f"{type(value).__name__} {value!r}" if isinstance(value, (*_VALUES, tuple)) else type(value).__name__


def plain(value: Any) -> Any:
    """Arrays as lists, for all of their digits."""
    if isinstance(value, dict):
        return {key: plain(held) for key, held in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.tolist() if hasattr(value, "tolist") else value


def own_dict(value: object) -> dict[str, Any] | None:
    """The `__dict__` of an object, whatever its class says about attributes."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


def slots_of(value: object) -> Iterator[tuple[str, Any]]:
    """What lies in slots."""
    for kind in type(value).__mro__:
        for name, descriptor in vars(kind).items():
            if isinstance(descriptor, types.MemberDescriptorType) and kind.__flags__ & _HEAP_TYPE and name[:2] != "__":
                try:
                    yield name, descriptor.__get__(value)
                except AttributeError:
                    continue


def surroundings() -> dict[str, Any]:
    """What later cells can tell of their process besides variables."""
    found: dict[str, Any] = {"random": digest(repr(random.getstate()).encode())}
    numpy, torch, pyplot = (sys.modules.get(name) for name in ("numpy", "torch", "matplotlib.pyplot"))
    if numpy is not None:
        found["numpy.random"] = digest(repr(plain(numpy.random.get_state())).encode())
        found["numpy.printoptions"] = repr(sorted(numpy.get_printoptions().items()))
    if torch is not None:
        found["torch.random"] = digest(torch.get_rng_state().numpy().tobytes())
        found["torch.default_dtype"] = str(torch.get_default_dtype())
        found["torch.grad"] = torch.is_grad_enabled()
    found["pyplot"] = str(pyplot.get_fignums() if pyplot is not None else [])
    found["recursion"] = sys.getrecursionlimit()
    found["decimal"] = str(decimal.getcontext())
    found["last_type"] = name_of(getattr(sys, "last_type", type(None)) or type(None))
    for folder, _, files in os.walk("."):
        for file in sorted(files):
            path = pathlib.Path(folder, file)
            found[f"file {path}"] = digest(path.read_bytes()) if path.suffix in _TEXT_FILES else "there"
    return found


def of_notebook(namespace: Mapping[str, Any], hidden: Mapping[str, Any]) -> dict[str, str]:
    """All lines of a notebook: its variables by path, `Out`, and its surroundings behind `@`."""
    found = Fingerprint(namespace)
    for name, value in sorted(namespace.items()):
        is_ours = name in hidden or re.fullmatch(r"_i+\d*|_\d+|__+|In|_oh|_dh|_ih|__warningregistry__", name)
        if not is_ours or name in {"_", "Out"}:
            found.add(name, value)
    found.walk()
    found.lines.update({f"@{key}": str(value) for key, value in surroundings().items()})
    return found.lines
