"""Where a value is that cannot travel: the path from its name. Searched only once something has failed."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

from .names import CALL, ITEM, ITEM_WORD
from .reducers.classes import attributes


@dataclass(frozen=True, slots=True)
class Stayed:
    """A value that did not travel: `path` leads from the name to the offender, of type `kind`; `why` is Python's.

    The result of a cell that failed to load, and that no other cell can have, has neither name nor path.
    """

    name: str
    kind: str
    path: str
    why: str


def describe_stay(name: str, value: object, problem: Exception) -> Stayed:
    """Describe a value that no stream can hold, for messages."""
    if isinstance(problem, RecursionError):
        return Stayed(name, f"{kind_of(value)} that is nested too deeply", name, str(problem))
    return Stayed(name, kind_of(value), name, " ".join(str(problem).split()) or kind_of(problem))


def path_to(name: str, root: object, target: object) -> str | None:
    """Write, as a person would, the way from a name to a value inside what it holds: `cfg['db'].conn`.

    The nearest way; None where none is found by looking at no more than some thousand values.
    """
    name = ITEM_WORD if name == ITEM else name
    if root is target:
        return name
    queue: deque[tuple[str, object]] = deque([(name, root)])
    visited = {id(root)}
    alive: list[object] = []  # temporaries whose ids are in `visited`
    while queue and len(visited) < _MANY:
        path, value = queue.popleft()
        for accessor, part in _parts(value):
            if part is target:
                return accessor(path)
            if id(part) not in visited and not isinstance(part, _LEAVES):
                visited.add(id(part))
                alive.append(part)
                queue.append((accessor(path), part))
    return None


_MANY = 20_000
_LEAVES = (str, bytes, int, float, complex, ModuleType, type(None))


def kind_of(value: object) -> str:
    """Name the type of a value, with its module unless that is builtins or the notebook."""
    kind = type(value)
    return (
        kind.__qualname__ if kind.__module__ in {"builtins", "__main__"} else f"{kind.__module__}.{kind.__qualname__}"
    )


def _parts(value: Any) -> Iterator[tuple[Callable[[str], str], object]]:
    """Yield what a value holds, each with how its path is written. The user's own code is not called."""
    if isinstance(value, dict):
        for key, held in list(dict.items(value)):
            yield _item(key), held
            yield _format("a key of {}"), key
    elif isinstance(value, list | tuple):
        for index, held in enumerate(value):
            yield _item(index), held
    elif isinstance(value, set | frozenset):
        for held in value:
            yield _format("an element of {}"), held
    elif isinstance(value, type):
        for key, held in attributes(value).items():
            yield _attribute(key), held
        return
    elif isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, MethodType):
        yield _attribute("__self__"), value.__self__
        yield _attribute("__func__"), value.__func__
    elif isinstance(value, partial):
        yield _attribute("func"), value.func
        yield _attribute("args"), value.args
        yield _attribute("keywords"), value.keywords
    elif isinstance(value, BaseException):
        for attribute in ("args", "__cause__", "__context__"):
            yield _attribute(attribute), getattr(value, attribute)
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = {}
    for key, held in list(own.items()):
        yield _attribute(key), held
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in [slots] if isinstance(slots, str) else slots:
            try:
                yield _attribute(slot), object.__getattribute__(value, slot)
            except AttributeError:
                continue
    if type(value).__module__ not in {"builtins", "__main__"}:
        yield _format("{}"), _state(value)


def _state(value: Any) -> object:
    """Return what pickle would look into: the value's reduction; None where the value's code fails."""
    try:
        return value.__reduce_ex__(5)
    except Exception:  # noqa: BLE001  the value's own code; that it fails is known
        return None


def _of_function(function: FunctionType) -> Iterator[tuple[Callable[[str], str], object]]:
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield _variable(variable), cell.cell_contents
        except ValueError:
            continue
    yield _format("a default of {}"), function.__defaults__
    yield _format("a default of {}"), function.__kwdefaults__


def _variable(name: str) -> Callable[[str], str]:
    """Write the path of a variable in a closure; of what `with gpu:` calls, the name alone: the user sees that."""
    return lambda path: name if path == CALL else f"the variable {name!r} inside {path}"


def _item(key: object) -> Callable[[str], str]:
    if isinstance(key, str | int | float | bool | bytes | None):
        return _format(f"{{}}[{_escaped(repr(key))}]")
    return _format("a value of {}")


def _attribute(name: str) -> Callable[[str], str]:
    return _format(f"{{}}.{_escaped(name)}")


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _format(pattern: str) -> Callable[[str], str]:
    return pattern.format
