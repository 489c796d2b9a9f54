"""How a person has set up Python itself: what is warned of, logged, imported from, and how decimals are rounded."""

import contextlib
import decimal
import logging
import re
import sys
import time
import warnings
from operator import attrgetter, is_
from typing import Any

from .setting_kind import SettingKind


def read_filters(_: Any) -> list[tuple[Any, ...]]:
    """Read the filters, categories by name: they are classes of libraries that need not be imported there yet."""
    filters: list[Any] = list(warnings.filters)
    if not _read_last or not _are_same(filters, _read_last[0]):
        found = []
        for action, message, category, module, line in filters:
            texts = [(part.pattern, part.flags) if isinstance(part, re.Pattern) else part for part in (message, module)]
            found.append((action, texts[0], (category.__module__, category.__qualname__), texts[1], line))
        _read_last[:] = filters, found
    return list(_read_last[1])


#: The filters that were read last, and as what.
_read_last: list[list[Any]] = []


def _are_same(some: list[Any], others: list[Any]) -> bool:
    """Tell whether two lists hold the very same filters, which are tuples and never change."""
    return len(some) == len(others) and all(map(is_, some, others))


def _write_filters(_: Any, value: list[tuple[Any, ...]]) -> None:
    filters: list[Any] = []
    for action, message, (home, name), module, line in value:
        with contextlib.suppress(Exception):  # the category's library is not imported, so nothing warns of it
            category = attrgetter(name)(sys.modules[home])
            texts = [re.compile(*part) if isinstance(part, tuple) else part for part in (message, module)]
            filters.append((action, texts[0], category, texts[1], line))
    warnings.resetwarnings()  # it also forgets what the old filters have let through
    warnings.filters.extend(filters)  # type: ignore[attr-defined]  # the only way to set them as they are


def _read_logging(_: Any) -> dict[str, Any]:
    root = logging.getLogger()
    levels = {
        name: logger.level
        for name, logger in list(root.manager.loggerDict.items())
        if type(logger) is logging.Logger
        and logger.level  # a library has a class of its own for what it sets up itself
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


def _read_locale(module: Any) -> list[str]:
    """Read how numbers, times and money are written, and texts ordered. Which bytes texts are is each side's own."""
    return [module.setlocale(getattr(module, name)) for name in _OF_LOCALE]


def _write_locale(module: Any, value: list[str]) -> None:
    for name, wanted in zip(_OF_LOCALE, value, strict=True):
        module.setlocale(getattr(module, name), wanted)


_OF_LOCALE = ("LC_NUMERIC", "LC_TIME", "LC_MONETARY", "LC_COLLATE")


def _read_dialects(csv: Any) -> dict[str, dict[str, Any]]:
    found = {name: csv.get_dialect(name) for name in csv.list_dialects() if name not in _OF_CSV}
    return {name: {part: getattr(dialect, part) for part in _PARTS} for name, dialect in found.items()}


def _write_dialects(csv: Any, value: dict[str, dict[str, Any]]) -> None:
    for name in _read_dialects(csv).keys() - value.keys():
        csv.unregister_dialect(name)
    for name, parts in value.items():
        csv.register_dialect(name, **parts)


_OF_CSV = frozenset({"excel", "excel-tab", "unix"})
_PARTS = (
    "delimiter", "doublequote", "escapechar", "lineterminator", "quotechar", "quoting", "skipinitialspace", "strict",
)  # fmt: skip


def _read_level_names(_: Any) -> dict[str, int]:
    return {name: level for name, level in logging.getLevelNamesMapping().items() if name not in _LEVELS}


def _write_level_names(_: Any, value: dict[str, int]) -> None:
    for name, level in value.items():
        logging.addLevelName(level, name)


_LEVELS = frozenset({"CRITICAL", "FATAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "NOTSET"})


def _read_timeout(socket: Any) -> float:
    found = socket.getdefaulttimeout()
    return -1.0 if found is None else found


PYTHON_KINDS = {
    "level names": SettingKind("logging", _read_level_names, _write_level_names, default={}),
    "locale": SettingKind("locale", _read_locale, _write_locale, default=["C"] * len(_OF_LOCALE)),
    "week": SettingKind(
        "calendar", lambda week: int(week.firstweekday()), lambda week, day: week.setfirstweekday(day), 0
    ),
    "dialects": SettingKind("csv", _read_dialects, _write_dialects, default={}),
    "timeout": SettingKind(
        "socket", _read_timeout, lambda socket, time: socket.setdefaulttimeout(None if time < 0 else time), default=-1.0
    ),
    "digits": SettingKind(
        "sys", lambda _: sys.get_int_max_str_digits(), lambda _, digits: sys.set_int_max_str_digits(digits)
    ),
    "warnings": SettingKind("warnings", read_filters, _write_filters),
    "logging": SettingKind("logging", _read_logging, _write_logging),
    "path": SettingKind("sys", _read_path, _write_path),
    "recursion": SettingKind("sys", lambda _: sys.getrecursionlimit(), lambda _, limit: sys.setrecursionlimit(limit)),
    "zone": SettingKind("time", lambda _: (time.tzname, time.timezone), lambda *_: time.tzset()),
    "decimal": SettingKind("decimal", _read_decimal, lambda _, parts: decimal.setcontext(decimal.Context(*parts))),
}
