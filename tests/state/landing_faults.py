"""Follows what lands line by line, and does harm at one of the lines."""

import ast
import functools
import linecache
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Self

import bulletin

HOMES = tuple(str(Path(bulletin.__file__).with_name(name)) for name in ("state", "cpython"))
#: These copy bytes, unbind names, and call what comes after that: only a signal can come in between.
NO_RETURN = frozenset(
    {
        "ExchangeReader.write_memory",
        "LoadTransaction.finish",
        "ExchangeReader.delete",
        "apply",
        "_land",
        "_settle",
        "InterruptGuard.__enter__",
        "InterruptGuard.__exit__",
    }
    | {"InterruptGuard.hold", "InterruptGuard.release", "undisturbed", "silence"}
)
#: Of the steps that are the first, the second or the last to pass a line, each so many-th is tried; with 1, all are.
EVERY = int(os.environ.get("BULLETIN_FAULTS", "150"))
#: In these, a value's own code may fail unnoticed.
MAY_FAIL = frozenset({"_made_alike"})
#: A line of a file, and how often it has been passed.
Point = tuple[str, int, int]


class Fault(MemoryError):
    """What goes wrong, and is no fault of the value that is being loaded."""


def fail() -> NoReturn:
    raise Fault("planted")


def press_stop() -> None:
    signal.raise_signal(signal.SIGINT)


class Steps:
    """Follows the lines of `bulletin.state` and `bulletin.cpython` while they run, and does harm at one of them."""

    def __init__(self, at: Point | None = None, harm: Callable[[], None] | None = None) -> None:
        self._at, self._harm = at, harm
        self._passed: dict[tuple[str, int], int] = {}
        self.points: list[Point] = []
        self.is_final: list[bool] = []  # of each point: nothing but a signal can stop it
        self.has_happened = False

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        return self._line if frame.f_code.co_filename.startswith(HOMES) else None

    def _line(self, frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            place = frame.f_code.co_filename, frame.f_lineno
            point = (*place, self._passed.get(place, 0) + 1)
            self._passed[place] = point[2]
            self.points.append(point)
            self.is_final.append(frame.f_code.co_qualname.partition(".<locals>")[0] in NO_RETURN | MAY_FAIL)
            if point == self._at and self._harm is not None:
                self.has_happened = True
                self._harm()
        return self._line


def some_of(points: list[Point]) -> list[Point]:
    """Every third moment, others in each run of the tests, and all of the last ones, after which nothing is undone.

    Where a fault fails, a stop nearly always does: each of them would take minutes. With BULLETIN_SOAK it is each.
    """
    if "BULLETIN_SOAK" in os.environ:
        return points
    return points[random.randrange(3) : -30 : 3] + points[-30:]


def is_handler(point: Point) -> bool:
    """Whether it is where an exception is handled: Python loses count of exceptions if a tracer raises one there."""
    return point[1] in handlers(point[0])


@functools.cache
def handlers(file: str) -> frozenset[int]:
    """The lines of a file that belong to an `except` or a `finally`."""
    parts: list[ast.AST] = []
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.Try):
            parts += [*node.handlers, *node.finalbody]
    lines = {line for part in parts for line in range(part.lineno, (part.end_lineno or part.lineno) + 1)}  # type: ignore[attr-defined]
    before = {part.lineno - 1 for part in parts}  # type: ignore[attr-defined]  # the line of `finally:` itself
    return frozenset(lines | {line for line in before if linecache.getline(file, line).strip().startswith("finally")})
