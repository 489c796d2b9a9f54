"""Which variables of a library travel: plain data of limited size that people set, and neither secrets nor findings.

A library's variables hold more than settings. What it has found out of its process (a device, a backend), how far it
has come, and who it is logged in as are of each side: the other side's would break more than it joins.
"""

import marshal
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any

from .atoms import ATOMS, is_atom
from .entry_owners import MAX_PARTS, is_own
from .library_places import LibraryDict, LibraryPlace
from .reducers.registries import is_plain

#: A variable of more bytes is no setting.
_MAX_BYTES = 2**16
_MAX_DEPTH = 2
#: A dict of more is no list of options.
_MAX_OPTIONS = 512

_NUMBERS = (int, float)
_WITHOUT_SECRETS = (int, float, complex, bool, NoneType)
_SECRET = re.compile("session|client|credential|token|secret|passw|passphrase|auth|key", re.IGNORECASE)
_OF_PROCESS = re.compile("device|backend|gpu|cuda|cpu|accelerator|platform|hostname", re.IGNORECASE)
_DEFINITIONS = (type, FunctionType, BuiltinFunctionType, ModuleType, ContextVar)


def is_small(value: Any) -> bool:
    """Tell whether a value is atoms, in tuples, lists and dicts, and takes little room. No code of its own runs."""
    return _size_of(value, 0) <= _MAX_BYTES


def _size_of(value: Any, depth: int) -> int:
    """Sum the bytes of plain data; what is not plain, or of many parts, is larger than all that is allowed."""
    kind = type(value)
    if kind in ATOMS:
        return sys.getsizeof(value)
    if kind not in (tuple, list, dict) or len(value) > MAX_PARTS or depth > _MAX_DEPTH:
        return _MAX_BYTES + 1
    parts = [part for item in value.items() for part in item] if kind is dict else value
    size = 0
    for part in parts:
        size += _size_of(part, depth + 1)
        if size > _MAX_BYTES:
            break
    return size


def is_tuple(value: Any) -> bool:
    """Tell whether a value is a small tuple that never changes: atoms all through, in tuples."""
    return type(value) is tuple and is_small(value) and all(type(part) in ATOMS or is_tuple(part) for part in value)


def is_same(one: Any, other: Any) -> bool:
    """Compare plain data by type and content."""
    if type(one) is not type(other):
        return False
    if is_small(one) and is_small(other):
        return one is other or marshal.dumps(one, 2) == marshal.dumps(other, 2)
    return bool(one == other) if is_atom(one) else one is other


def is_set_by_people(holder: LibraryDict, name: str, before: Any, now: Any) -> bool:
    """Tell whether a plain value is another one that somebody has set; a variable has its own type.

    A library that asks its process when it needs to know has None until then, so None does not become a value. People
    turn off a limit by None, and give it as another kind of number. An option of an object may be of several types.
    """
    if type(now) is type(before):
        return not is_same(now, before)
    if holder.attribute and holder.is_public:
        return True
    is_public = name[:1] != "_" and holder.kind is not object
    return is_public and type(before) in _NUMBERS and (now is None or type(now) in _NUMBERS)


def is_withheld(place: LibraryPlace, value: Any) -> bool:
    """Tell whether a value stays where it is: it may hold a secret, or says what a process has."""
    kind = type(value)
    if issubclass(kind, _DEFINITIONS):
        return False
    said = [place.attribute, *(key for key in place.key if type(key) is str)]
    if is_own(value) or any(map(is_own, place.key)):
        return False
    if kind not in _WITHOUT_SECRETS and any(map(_SECRET.search, said)):
        return True
    if place.owner or kind not in (*ATOMS, tuple, list, dict):
        return False
    is_limited = kind in ATOMS or not place.key
    return any(map(_OF_PROCESS.search, said)) or (is_limited and not is_small(value))


def is_options(value: Any) -> bool:
    """Tell whether a value is a small dict of plain data, records of a library among it."""
    return type(value) is dict and len(value) <= MAX_PARTS and is_plain(list(value.items()))


def keep_option(holder: LibraryDict, key: str, value: Any) -> None:
    """Keep, to be compared, what an entry of options is: a plain value; or a dict of such, in those of an object."""
    if holder.atoms is None or len(holder.held) > (_MAX_OPTIONS if holder.is_public else MAX_PARTS):
        return
    if is_atom(value):
        holder.atoms[key] = value
    elif holder.is_public and is_options(value):
        holder.groups[key] = repr(value)


def changed_options(holder: LibraryDict) -> Mapping[str, Any]:
    """Find which dicts among the options of an object have another content than they had, and keep that."""
    found = {}
    for name, before in list(holder.groups.items()):
        group = holder.held.get(name)
        if is_options(group) and (text := repr(group)) != before:
            holder.groups[name], found[name] = text, group
    return found
