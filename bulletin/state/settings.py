"""How a person has set up Python and its libraries: what is warned of, logged, imported from, and how things look.

Each kind of setting is plain data that is read here and written there, whole. Libraries are asked only where they are
imported; what differs from a library's own defaults makes the other side import it.
"""

import contextlib
import importlib
import pickle
import sys
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

from .library_settings import LIBRARY_KINDS
from .python_settings import PYTHON_KINDS, read_filters
from .setting_kind import SettingKind

#: What was found, by kind, each pickled by itself: one that this side cannot read harms no other.
Settings: TypeAlias = dict[str, bytes]

KINDS: dict[str, SettingKind] = {**PYTHON_KINDS, **LIBRARY_KINDS}
#: Filters of warnings that an executor had before its first cell.
_brought: list[tuple[Any, ...]] = []
#: Each kind's value when it was pickled last, and the pickle.
_pickles: dict[str, tuple[Any, bytes]] = {}
#: In an executor, how it is set up between two cells, when nobody changes it: reading it takes longer than many cells.
_current: Settings | None = None
#: How many modules were imported then: values that arrive may import more, and a library may set itself up.
_module_count = 0
#: And of each kind, what came from the notebook last and how it has read here since. The two may differ for ever: a
#: library that only this side has imported sets levels of its loggers.
_settled: dict[str, tuple[bytes | None, bytes | None]] = {}


def read() -> Settings:
    """Read the settings of this process. A kind that is at its library's default is left out."""
    found: Settings = {}
    imported = sys.modules.get
    for name, (home, read_kind, _, default) in KINDS.items():
        module = imported(home)
        if module is None:
            continue
        try:  # and no `suppress`: this is asked twice for each cell
            value = read_kind(module)
            if value != default:
                found[name] = _pickled(name, value)
        except Exception:  # noqa: BLE001, S112  a library of another version, or half imported; a value of any kind
            continue
    return found


def _pickled(name: str, value: Any) -> bytes:
    """Pickle a value. One that is as it was the last time gives the same bytes again."""
    known = _pickles.get(name)
    if known is None or known[0] != value:
        known = _pickles[name] = value, pickle.dumps(value, protocol=5)
    return known[1]


def current() -> Settings:
    """Return the settings between two cells: as remembered, or read where a module was imported since."""
    return read() if _current is None or len(sys.modules) != _module_count else _current


def end_cell() -> Settings:
    """Read the settings, and remember them until the next cell."""
    return _remember(read())


def _remember(now: Settings) -> Settings:
    global _current, _module_count
    _current, _module_count = now, len(sys.modules)
    return now


def difference(before: Settings, now: Settings) -> Settings:
    """Return the kinds that were set since; one that was set back is there as its default."""
    changed = {name: value for name, value in now.items() if before.get(name) != value}
    changed.update((name, pickle.dumps(KINDS[name].default)) for name in before.keys() - now.keys())
    return changed


def now_of(kinds: Iterable[str]) -> Settings:
    """Read these kinds; one that is at its library's default is there as that."""
    now = read()
    return {name: now[name] if name in now else pickle.dumps(KINDS[name].default) for name in kinds if name in KINDS}


def prepare(found: Settings, *, is_whole: bool) -> None:
    """Set what values rely on as they load: where modules are found, and the precision of libraries, for instance.

    With `is_whole`, of the executor's side, the libraries are imported that `write` would import after the values, or
    those of the first cell would meet others than those of the next.
    """
    now = current()
    if is_whole and found.get("warnings") != _settled.get("warnings", (None, None))[0]:
        with contextlib.suppress(Exception):  # as below
            _import_categories(pickle.loads(found["warnings"]))
    for name in found.keys() & {"path", *LIBRARY_KINDS}:
        kind = KINDS[name]
        if found[name] == now.get(name):
            continue
        if kind.module not in sys.modules and kind.default is None:
            continue
        with contextlib.suppress(Exception):  # `write` comes to it again
            value, module = pickle.loads(found[name]), importlib.import_module(kind.module)
            if kind.read(module) != value:
                kind.write(module, value)


def write(found: Settings, *, is_whole: bool) -> None:
    """Set this process up as the other one was.

    With `is_whole`, of the executor's side, kinds that are missing are at their default, and the filters of warnings
    that its libraries brought along stay behind those that came.
    """
    global _settled
    now: Settings = {}
    if is_whole:
        if not _brought:
            _brought.extend(read_filters(warnings))
        now = current()
    pairs = _pairs(found, now)
    if is_whole and pairs == _settled:
        _remember(now)
        return
    for name, kind in KINDS.items():
        if is_whole and (found.get(name) == now.get(name) or pairs[name] == _settled.get(name)):
            continue
        is_here, has_default = kind.module in sys.modules, kind.default is not None
        if name not in found and not (is_whole and is_here and has_default):
            continue
        if not is_here and not has_default:
            continue
        with contextlib.suppress(Exception):  # as above: a library that is not here has nothing to be set up
            value: Any = pickle.loads(found[name]) if name in found else kind.default
            if name == "warnings" and is_whole:
                _import_categories(value)
                value += [entry for entry in _brought if entry not in value]
            module = importlib.import_module(kind.module)
            if kind.read(module) != value:
                kind.write(module, value)
    if is_whole:
        _settled = _pairs(found, _remember(read()))


def _pairs(found: Settings, now: Settings) -> dict[str, tuple[bytes | None, bytes | None]]:
    return {name: (found.get(name), now.get(name)) for name in KINDS}


def _import_categories(value: list[tuple[Any, ...]]) -> None:
    """Import the libraries of the categories, which the cell may use: without its category a filter is left out."""
    for home in {entry[2][0] for entry in value} - sys.modules.keys():
        with contextlib.suppress(Exception):
            importlib.import_module(home)
