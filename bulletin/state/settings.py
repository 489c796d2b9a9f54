"""How a person has set up Python and its libraries: what is warned of, logged, imported from, and how things look.

Each kind of setting is plain data that is read here and written there, whole. Libraries are asked only where they are
imported; what differs from a library's own defaults makes the other side import it.
"""

import contextlib
import decimal
import importlib
import logging
import pickle
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

#: What was found, by kind, each pickled by itself: one that this side cannot read harms no other.
Settings: TypeAlias = dict[str, bytes]

#: Filters of warnings that an executor had before its first cell.
_brought: list[tuple[Any, ...]] = []
#: Each kind's value when it was pickled last, and the pickle.
_pickles: dict[str, tuple[Any, bytes]] = {}
#: What a library with hundreds of options had when it was asked last, and which of them were not at their default.
_seen: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
#: In an executor, how it is set up between two cells, when nobody changes it: reading it takes longer than many cells.
_current: Settings | None = None
#: How many modules were imported then: values that arrive may import more, and a library may set itself up.
_module_count = 0
#: And of each kind, what came from the notebook last and how it has read here since. The two may differ for ever: a
#: library that only this side has imported sets levels of its loggers.
_settled: dict[str, tuple[bytes | None, bytes | None]] = {}
#: matplotlib's way to the screen, which each side has of its own.
_OF_THIS_SIDE = frozenset({"backend", "backend_fallback", "interactive", "toolbar"})


class _SettingKind(NamedTuple):
    module: str
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]
    #: What a library's own defaults are read as. With none, the library is left alone where it is not imported.
    default: object = None


def read() -> Settings:
    """Read the settings of this process. A kind that is at its library's default is left out."""
    found: Settings = {}
    for name, kind in _KINDS.items():
        module = sys.modules.get(kind.module)
        if module is None:
            continue
        with contextlib.suppress(Exception):  # a library of another version, or half imported; a value of any kind
            value = kind.read(module)
            if value != kind.default:
                found[name] = _pickled(name, value)
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
    changed.update((name, pickle.dumps(_KINDS[name].default)) for name in before.keys() - now.keys())
    return changed


def write(found: Settings, *, is_whole: bool) -> None:
    """Set this process up as the other one was.

    With `is_whole`, of the executor's side, kinds that are missing are at their default, and the filters of warnings
    that its libraries brought along stay behind those that came.
    """
    global _settled
    now: Settings = {}
    if is_whole:
        if not _brought:
            _brought.extend(_read_filters(warnings))
        now = current()
    pairs = _pairs(found, now)
    if is_whole and pairs == _settled:
        _remember(now)
        return
    for name, kind in _KINDS.items():
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
    return {name: (found.get(name), now.get(name)) for name in _KINDS}


def shell_of_cells() -> Any:
    """Return IPython's shell of this process, which runs its cells; None where there is none."""
    interactive: Any = sys.modules.get("IPython.core.interactiveshell")
    return interactive.InteractiveShell._instance if hasattr(interactive, "InteractiveShell") else None


# --- Python itself


def _read_filters(_: Any) -> list[tuple[Any, ...]]:
    """Read the filters, categories by name: they are classes of libraries that need not be imported there yet."""
    found = []
    filters: list[Any] = list(warnings.filters)
    for action, message, category, module, line in filters:
        texts = [(part.pattern, part.flags) if isinstance(part, re.Pattern) else part for part in (message, module)]
        found.append((action, texts[0], (category.__module__, category.__qualname__), texts[1], line))
    return found


def _write_filters(_: Any, value: list[tuple[Any, ...]]) -> None:
    filters: list[Any] = []
    for action, message, (home, name), module, line in value:
        with contextlib.suppress(Exception):  # the category's library is not imported, so nothing warns of it
            category = attrgetter(name)(sys.modules[home])
            texts = [re.compile(*part) if isinstance(part, tuple) else part for part in (message, module)]
            filters.append((action, texts[0], category, texts[1], line))
    warnings.resetwarnings()  # it also forgets what the old filters have let through
    warnings.filters.extend(filters)  # type: ignore[attr-defined]  # the only way to set them as they are


def _import_categories(value: list[tuple[Any, ...]]) -> None:
    """Import the libraries of the categories, which the cell may use: without its category a filter is left out."""
    for home in {entry[2][0] for entry in value} - sys.modules.keys():
        with contextlib.suppress(Exception):
            importlib.import_module(home)


def _read_logging(_: Any) -> dict[str, Any]:
    root = logging.getLogger()
    levels = {
        name: logger.level
        for name, logger in list(root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and logger.level
    }
    return {
        "disabled": root.manager.disable,
        "level": root.level,
        "levels": levels,
        "handlers": [_plain_handler(handler) for handler in root.handlers if _is_plain(handler)],
    }


def _write_logging(_: Any, value: dict[str, Any]) -> None:
    root = logging.getLogger()
    logging.disable(value["disabled"])
    root.setLevel(value["level"])
    for name, level in value["levels"].items():
        logging.getLogger(name).setLevel(level)
    plain = [handler for handler in root.handlers if _is_plain(handler)]
    if [_plain_handler(handler) for handler in plain] == value["handlers"]:
        return
    for handler in plain:
        root.removeHandler(handler)
    for stream, level, layout, dates in value["handlers"]:
        made = logging.StreamHandler(getattr(sys, stream))
        made.setLevel(level)
        made.setFormatter(logging.Formatter(layout, dates))
        root.addHandler(made)


def _is_plain(handler: logging.Handler) -> bool:
    """Tell whether the handler is what `basicConfig` makes: one that prints."""
    return (
        type(handler) is logging.StreamHandler
        and not handler.filters
        and handler.stream in (sys.stdout, sys.stderr)
        and (handler.formatter is None or type(handler.formatter) is logging.Formatter)
    )


def _plain_handler(handler: Any) -> tuple[str, int, str | None, str | None]:
    formatter = handler.formatter
    stream = "stdout" if handler.stream is sys.stdout else "stderr"
    return stream, handler.level, formatter and formatter._fmt, formatter and formatter.datefmt


def _read_path(_: Any) -> tuple[list[str], list[str]]:
    """Return the folders that somebody put before Python's own, and those behind them."""
    own = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    indexes = [index for index, entry in enumerate(sys.path) if str(entry).startswith(own)]
    first, last = (indexes[0], indexes[-1] + 1) if indexes else (len(sys.path), len(sys.path))
    return [entry for entry in sys.path[:first] if entry], sys.path[last:]


def _write_path(_: Any, value: tuple[list[str], list[str]]) -> None:
    """Add folders to `sys.path`. None is removed: those of this side's own stay."""
    before, behind = value
    for entry in reversed([entry for entry in before if entry not in sys.path]):
        sys.path.insert(1 if sys.path[:1] == [""] else 0, entry)
    sys.path.extend(entry for entry in behind if entry not in sys.path)


def _read_decimal(_: Any) -> Any:
    """Read the context of this thread, without the signals that arithmetic leaves in it."""
    found = decimal.getcontext().copy()
    found.clear_flags()
    return found.__reduce__()[1]


# --- libraries


def _write_printing(numpy: Any, value: Mapping[str, Any]) -> None:
    numpy.set_printoptions(**value)


def _write_errors(numpy: Any, value: Mapping[str, Any]) -> None:
    numpy.seterr(**value)


def _read_options(_: Any) -> dict[str, Any]:
    """Read the options that are not as pandas has them. Asked one by one they would take 10 ms."""
    config: Any = sys.modules.get("pandas._config.config") or importlib.import_module("pandas._config.config")
    seen = _seen.get("options")
    if seen is not None and seen[0] == config._global_config:
        return seen[1]
    found: dict[str, Any] = {}
    for key, option in config._registered_options.items():
        at: Any = config._global_config
        for part in key.split("."):
            at = at[part]
        if key not in config._deprecated_options and at is not option.defval and at != option.defval:
            found[key] = at
    _seen["options"] = _copied(config._global_config), found
    return found


def _copied(options: dict[str, Any]) -> dict[str, Any]:
    """Copy options so that they do not change with the original: the containers in them are copied too."""
    copy: dict[str, Any] = {}
    for key, value in dict.items(options):  # matplotlib's own way would warn
        copy[key] = _copied(value) if isinstance(value, dict) else list(value) if isinstance(value, list) else value
    return copy


def _write_options(pandas: Any, value: Mapping[str, Any]) -> None:
    now = _read_options(pandas)
    for key in now.keys() - value.keys():
        pandas.reset_option(re.escape(key) + "$")
    for key, wanted in value.items():
        if key not in now or now[key] != wanted:
            pandas.set_option(key, wanted)


def _read_style(matplotlib: Any) -> dict[str, Any]:
    seen = _seen.get("style")
    if seen is not None and dict.__eq__(matplotlib.rcParams, seen[0]):
        return seen[1]
    defaults = matplotlib.rcParamsDefault
    found = {
        key: value
        for key, value in dict.items(matplotlib.rcParams)  # its own way would warn, and choose a backend
        if key not in _OF_THIS_SIDE and value != dict.get(defaults, key)
    }
    _seen["style"] = _copied(matplotlib.rcParams), _copied(found)
    return _seen["style"][1]


def _write_style(matplotlib: Any, value: Mapping[str, Any]) -> None:
    for key in _read_style(matplotlib).keys() - value.keys():
        dict.__setitem__(matplotlib.rcParams, key, dict.get(matplotlib.rcParamsDefault, key))
    dict.update(matplotlib.rcParams, value)


def _read_figures(_: Any) -> dict[str, Any]:
    """Read `%config InlineBackend`: in which formats figures are sent.

    IPython keeps it for the first figure if there was none.
    """
    if "matplotlib_inline.config" not in sys.modules and not getattr(shell_of_cells(), "config", {}).get(
        "InlineBackend"
    ):
        return {}
    inline = importlib.import_module("matplotlib_inline.config").InlineBackend
    config = inline.instance(parent=shell_of_cells())
    found = {
        "figure_formats": set(config.figure_formats),  # plain containers, where IPython has some that watch
        "print_figure_kwargs": dict(config.print_figure_kwargs),
        "close_figures": bool(config.close_figures),
    }
    return {} if found == _FIGURES else found


def _write_figures(_: Any, value: Mapping[str, Any]) -> None:
    config = importlib.import_module("matplotlib_inline.config").InlineBackend.instance(parent=shell_of_cells())
    config.shell = shell_of_cells()
    for name, wanted in (value or _FIGURES).items():
        setattr(config, name, wanted)


#: As IPython has it.
_FIGURES = {"figure_formats": {"png"}, "print_figure_kwargs": {"bbox_inches": "tight"}, "close_figures": True}


def _read_torch(torch: Any) -> dict[str, Any]:
    printing = sys.modules["torch._tensor_str"].PRINT_OPTS
    return {
        "printing": {name: getattr(printing, name) for name in _PRINTING},
        "dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "grad": torch.is_grad_enabled(),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "precision": torch.get_float32_matmul_precision(),
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
    }


def _write_torch(torch: Any, value: Mapping[str, Any]) -> None:
    for name, wanted in value["printing"].items():
        setattr(sys.modules["torch._tensor_str"].PRINT_OPTS, name, wanted)
    torch.set_default_dtype(getattr(torch, value["dtype"]))
    torch.set_grad_enabled(value["grad"])
    is_deterministic, warns_only = value["deterministic"]
    torch.use_deterministic_algorithms(is_deterministic, warn_only=warns_only)
    torch.set_float32_matmul_precision(value["precision"])
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = value["cudnn"]


_PRINTING = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")


def _count_hooks(hooks: Any, value: int) -> None:
    """Raise torch's counter of hooks, never lower it: a number given twice would let one hook replace another."""
    handle = hooks.RemovableHandle
    handle.next_id = max(handle.next_id, value)


_KINDS = {
    "warnings": _SettingKind("warnings", _read_filters, _write_filters),
    "logging": _SettingKind("logging", _read_logging, _write_logging),
    "path": _SettingKind("sys", _read_path, _write_path),
    "recursion": _SettingKind("sys", lambda _: sys.getrecursionlimit(), lambda _, limit: sys.setrecursionlimit(limit)),
    "zone": _SettingKind("time", lambda _: (time.tzname, time.timezone), lambda *_: time.tzset()),
    "decimal": _SettingKind("decimal", _read_decimal, lambda _, parts: decimal.setcontext(decimal.Context(*parts))),
    "printing": _SettingKind("numpy", lambda numpy: numpy.get_printoptions(), _write_printing),
    "errors": _SettingKind("numpy", lambda numpy: numpy.geterr(), _write_errors),
    "torch": _SettingKind(
        "torch._tensor_str",
        lambda _: _read_torch(sys.modules["torch"]),
        lambda _, value: _write_torch(sys.modules["torch"], value),
    ),
    "hooks": _SettingKind("torch.utils.hooks", lambda hooks: hooks.RemovableHandle.next_id, _count_hooks),
    "options": _SettingKind("pandas", _read_options, _write_options, default={}),
    "style": _SettingKind("matplotlib", _read_style, _write_style, default={}),
    "figures": _SettingKind("IPython.core.interactiveshell", _read_figures, _write_figures, default={}),
}
