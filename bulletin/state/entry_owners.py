"""Whose an entry of a library's dict is: the notebook's own, what people have put there, or the library's.

Told by what the entry is, by the dict that it is in, and by the text of the module.
"""

import functools
import re
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from bulletin.cpython.class_layout import is_python_class

from .atoms import ATOMS, is_atom
from .inplace import attributes_of
from .library_places import LibraryDict, owner_of
from .modules.sources import spec_in
from .reducers import is_in_place, places_of
from .reducers.functions import is_importable

_MAIN = frozenset({"__main__", "__mp_main__"})
#: A container of more is not looked through for what is the notebook's.
MAX_PARTS = 64


def is_own(value: Any) -> bool:
    """Tell whether what a library holds as an attribute is the notebook's, or is made around what is."""
    if is_own_entry(value):
        return True
    kind = type(value)
    if issubclass(kind, property | classmethod | staticmethod):
        return _is_own_definition(getattr(value, "fget", None) or getattr(value, "__func__", None))
    attributes = attributes_of(value)
    if not attributes or len(attributes) > MAX_PARTS:
        return False
    return any(map(_is_own_definition, attributes.values())) and not issubclass(kind, FunctionType | type)


def is_own_entry(value: Any) -> bool:
    """Tell whether an entry of a dict is a function or a class of the notebook's, or a few of them."""
    kind = type(value)
    if kind in (list, tuple):
        return len(value) <= MAX_PARTS and any(map(_is_own_definition, value))
    return _is_own_definition(value)


def is_found_there(module: str, value: Any) -> bool:
    """Tell whether an entry says only what the library of this module has anyway: such ones, as it fills them in late.

    That are its own functions and classes, atoms, and tuples of both.
    """
    kind = type(value)
    if kind is tuple:
        return len(value) <= MAX_PARTS and all(is_found_there(module, part) for part in value)
    if kind in (FunctionType, BuiltinFunctionType) or issubclass(kind, type):
        home = getattr(value, "__module__", None)
        return isinstance(home, str) and home.partition(".")[0] == module.partition(".")[0] and is_importable(value)
    return is_atom(value)


def text_of_key(key: Any) -> str:
    """Return the text that the key of an entry is, or ends with; empty where it is, and has, none."""
    last = key[-1] if type(key) is tuple and key else key
    return last if type(last) is str else ""


def _is_own_definition(value: Any) -> bool:
    kind = type(value)
    if kind is FunctionType:
        if value.__module__ in _MAIN:
            return True
        return value.__closure__ is not None and any(map(_is_in_cell, value.__closure__))
    if issubclass(kind, type):
        return value.__module__ in _MAIN
    if kind is MethodType:
        return _is_own_definition(value.__func__) or _is_own_definition(value.__self__)
    if kind is functools.partial:
        return _is_own_definition(value.func)
    return kind.__module__ in _MAIN


def _is_in_cell(cell: Any) -> bool:
    try:
        held = cell.cell_contents
    except ValueError:
        return False
    return type(held) is FunctionType and held.__module__ in _MAIN


def is_put_by_user(holder: LibraryDict, key: str, value: Any, *, is_first: bool) -> bool:
    """Tell whether an entry is what people have put into a dict of a library's, and not what it filled itself.

    The dict is for everybody, or the object that has it gives the value out under this key (plotly's templates).
    """
    if issubclass(type(value), type | FunctionType | BuiltinFunctionType | ModuleType):
        return False
    if holder.is_shared:
        is_put_there = not is_first or begins_empty(holder.module, holder.attribute)
    else:
        is_put_there = holder.attribute[:1] == "_" and _gives_out(holder, key)
    return is_put_there and not is_constant(value)


def _gives_out(holder: LibraryDict, key: str) -> bool:
    """Tell whether an object that a library has under a public name gives out the entries of a dict that it has."""
    owner = owner_of(holder.place_of(key)) if holder.owner and holder.owner[:1] != "_" else None
    if owner is None or isinstance(owner, type) or not hasattr(type(owner), "__getitem__"):
        return False
    try:
        return key in owner
    except Exception:  # noqa: BLE001  code of a library
        return False


def is_constant(value: Any) -> bool:
    """Tell whether a library has it once for all, so that each side has its own."""
    place = places_of(type(value)).get(id(value)) if type(value) not in ATOMS else None
    return place is not None and is_in_place(value, place)


@functools.lru_cache(maxsize=256)
def begins_empty(module: str, attribute: str) -> bool:
    """Tell whether the text of a module makes a dict empty: whatever is in it was put there since."""
    text = _text_of(module)
    made = rf"^\s*{re.escape(attribute)}\s*(?::[^=\n]*)?=\s*(?:\{{\}}|dict\(\))\s*(?:#.*)?$"
    return text is not None and re.search(made, text, re.MULTILINE) is not None


def made_later(holder: LibraryDict, new: Iterable[tuple[Any, Any]]) -> set[str]:
    """List classes that somebody has made in a module after its text had run, and that nobody finds there otherwise.

    They come behind all that the text binds.
    """
    classes = {name for name, value in new if _is_home(value, holder.module, name)}
    if not classes:
        return classes
    text = _text_of(holder.module)
    later = set()
    for name in reversed(holder.held):
        if text is None or re.search(_BINDING.format(re.escape(name)), text, re.MULTILINE):
            break
        later.add(name)
    return classes & later


def _text_of(module: str) -> str | None:
    spec = spec_in(sys.modules.get(module))
    try:
        return spec.loader.get_source(module)  # type: ignore[union-attr, no-any-return]
    except (AttributeError, ImportError, OSError):
        return None


#: How a text binds a name, as far as lines say it.
_BINDING = r"^\s*(?:class|def|async def)\s+{0}\b|^\s*{0}\s*[:=,]|^\s*(?:from|import)\s.*\b{0}\b|^\s+{0},?$"


def _is_home(value: Any, module: str, name: str) -> bool:
    kind = type(value)
    is_class = issubclass(kind, type) and is_python_class(value)
    return is_class and value.__module__ == module and value.__qualname__ == name
