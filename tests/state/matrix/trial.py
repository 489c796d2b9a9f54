"""One kind of value put to the test: once in a plain notebook, once through the codec, and what differs."""

import struct
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bulletin.errors import BulletinError, CannotSend, StayedBehind
from tests.state.notebook import Executor, Notebook, run_cell

from .kind import Column, Kind, Mark


@dataclass(frozen=True, slots=True)
class Found:
    """A mark for each column, and in words what was not as expected."""

    marks: dict[Column, Mark]
    said: list[str] = field(default_factory=list)

    @property
    def is_executor_lost(self) -> bool:
        """True if the executor ended by itself."""
        return any(text.startswith(DIED) for text in self.said)


#: Which looks count for which column.
ASKED: dict[Column, tuple[str, ...]] = {
    "there": ("error", "stayed", "saw", "type", "x", "again"),
    "seen": ("keep",),
    "kept": ("is",),
}
TRACEBACK = "Traceback (most recent call last):"
#: What asking an executor that has ended raises.
DEATHS = (struct.error, BrokenPipeError)
#: How the words begin where the executor ended by itself.
DIED = "the executor died"


def trial(kind: Kind, executor: Executor) -> Found:
    """Run the kind through the codec and compare it with a plain run.

    Raises
    ------
    AssertionError
        If the row itself proves nothing: its change does not show, or it makes another object, in a plain run.
    """
    expected = plainly(kind)
    marks: dict[Column, Mark] = {"there": "yes", "back": "yes", "seen": "yes" if kind.change else "", "kept": "yes"}
    said: list[str] = []
    with a_notebook(executor) as book:
        try:
            sent(kind, book, expected, marks, said)
        finally:
            book.local(kind.after)
    with a_notebook(executor) as book:
        returned(kind, book, expected, marks, said)
    if marks["back"] == "stays" and not (kind.refused or kind.behind):
        marks["back"] = "no"
        said.append("made there: it stays there")
    return Found(marks, said)


def sent(kind: Kind, book: Notebook, expected: dict[str, Any], marks: dict[Column, Mark], said: list[str]) -> None:
    """Out, through a cell, and back."""
    book.local(setup(kind))
    try:
        applied = book.gpu(cell(kind))
    except CannotSend as refusal:
        said.append(f"refused: {refusal.kind if refusal.path == 'x' else f'{refusal.path}: {refusal.kind}'}")
        is_for_it = refusal.name == "x"
        marks["there"], marks["seen"] = "refused" if is_for_it else "no", "no" if kind.change and not is_for_it else ""
        marks["kept"] = "" if is_for_it else "no"
        return
    except Exception as problem:  # noqa: BLE001  whatever goes wrong in the codec
        marks["there"], marks["seen"], marks["kept"] = "no", "no" if kind.change else "", "no"
        said.append(failure("sent", problem))
        return
    raised = applied.extra.get("error")
    if isinstance(raised, StayedBehind):
        marks["there"], marks["seen"] = "touch", ""
        said.append(f"behind: {raised.path}: {raised.kind}")
    found = looks(kind, book.ns)
    found["error"], found["stayed"] = repr(raised), [left.name for left in applied.stayed]
    found["again"] = again(kind, book)
    for column, asked in ASKED.items():
        different = [what for what in asked if found[what] != expected[what]]
        if different and marks[column] == "yes":
            marks[column] = "no"
        said += [f"{what} is {found[what]!s:.500}, not {expected[what]!s:.500}" for what in different]


def again(kind: Kind, book: Notebook) -> str:
    """What the next %%gpu cell sees, once the notebook itself has changed the value in the same way."""
    if kind.once:
        return ""
    problem = changed_here(kind, book.ns)
    try:
        book.gpu(f"again = repr(({kind.look}))")
    except Exception as failed:  # noqa: BLE001  whatever goes wrong in the codec
        return failure("sent again", failed)
    return f"{problem} {book.ns.get('again')}"


def changed_here(kind: Kind, ns: dict[str, Any]) -> str:
    """Change the value once more, in the notebook; the error, if that cannot be done twice."""
    try:
        run_cell(kind.change, ns, "<local>")
    except Exception as problem:  # noqa: BLE001  whatever it is, it must be the same everywhere
        return repr(problem)
    return ""


def returned(kind: Kind, book: Notebook, expected: dict[str, Any], marks: dict[Column, Mark], said: list[str]) -> None:
    """Made in a cell, and brought back; or left there, and used by the next cell."""
    try:
        applied = book.gpu(kind.make)
    except Exception as problem:  # noqa: BLE001  whatever goes wrong in the codec
        marks["back"] = "no"
        said.append(failure("made there", problem))
        return
    try:
        if error := applied.extra.get("error"):
            raise error
        if "x" in [left.name for left in applied.stayed]:
            marks["back"] = "stays"
            if error := book.gpu(f"there = repr(({kind.look}))").extra.get("error"):
                raise error
            found = "", book["there"]
        else:
            found = type_of(book["x"]), repr(eval(kind.look, book.ns))
            if kind.after:
                book.local(kind.after)
        wanted = expected["made"]
        if found[1] != wanted[1] or found[0] not in ("", wanted[0]):
            marks["back"] = "no"
            said.append(f"made there: {found!s:.500}, not {wanted!s:.500}")
        if kind.after:  # there, too: all kinds have one executor
            book.gpu(kind.after)
    except Exception as problem:  # noqa: BLE001  whatever a broken value does when it is looked at
        marks["back"] = "no"
        said.append(f"made there: {problem!r:.1500}")


def failure(when: str, problem: Exception) -> str:
    """What to say of a round trip that did not come to its end. The last lines of a traceback say most."""
    if isinstance(problem, DEATHS):
        return f"{DIED}: {problem!r}"
    if isinstance(problem, BulletinError):
        return f"{when}: {problem}"
    text = str(problem) if str(problem).startswith(TRACEBACK) else "".join(traceback.format_exception(problem))
    return f"{when}: {TRACEBACK} ... {text[-1200:]}"


def plainly(kind: Kind) -> dict[str, Any]:
    """What a notebook without us shows. Asserts that the row can tell right from wrong."""
    with main_module() as module:
        ns = module.__dict__
        run_cell(kind.make, ns, "<local>")
        made = type_of(ns["x"]), repr(eval(kind.look, ns))
        run_cell(kind.after, ns, "<local>")
    with main_module() as module:
        ns = module.__dict__
        run_cell(setup(kind), ns, "<local>")
        run_cell(cell(kind), ns, "<cell>")
        found = looks(kind, ns)
        problem = changed_here(kind, ns)
        found["again"] = "" if kind.once else f"{problem} {shown(kind.look, ns, 'x')}"
        run_cell(kind.after, ns, "<local>")
    assert found["is"] == [True, True], f"{kind.name}: the row makes another object: {found['is']}"
    assert not kind.change or kind.once or found["x"] != made[1], f"{kind.name}: the change does not show"
    assert " at 0x" not in found["x"], f"{kind.name}: an address differs every time"
    return {**found, "made": made, "error": "None", "stayed": []}


def setup(kind: Kind) -> str:
    """The notebook's cells before: the value, and what only the notebook holds."""
    return f"{kind.make}\nkeep = x\n" + (f"inside = {kind.inner}\n" if kind.inner else "")


def cell(kind: Kind) -> str:
    """The %%gpu cell: it looks at the value, then changes it."""
    look = "" if kind.once and kind.change else f"saw = repr(({kind.look}))\n"
    return look + kind.change


def looks(kind: Kind, ns: dict[str, Any]) -> dict[str, Any]:
    """Everything that can be asked after the cell."""
    return {
        "saw": ns.get("saw"),
        "type": type_of(ns.get("x")),
        "x": shown(kind.look, ns, "x"),
        "keep": shown(kind.look, ns, "keep"),
        "is": [ns.get("x") is ns["keep"], not kind.inner or shown(f"({kind.inner}) is inside", ns, "x") == "True"],
    }


def shown(look: str, ns: dict[str, Any], name: str) -> str:
    """The look at a name of the notebook, or the error that it ends in."""
    try:
        return repr(eval(look, {**ns, "x": ns[name]}))
    except Exception as problem:  # noqa: BLE001  whatever a broken value does when it is looked at
        return f"looking raised {problem!r:.300}"


def type_of(value: object) -> str:
    """A name for the type that is the same in every run."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


@contextmanager
def a_notebook(executor: Executor) -> Iterator[Notebook]:
    """A fresh notebook, which is `__main__` for as long."""
    book = Notebook(executor)
    with main_module(book.module):
        yield book


@contextmanager
def main_module(module: types.ModuleType | None = None) -> Iterator[types.ModuleType]:
    """Let a module be `__main__`, as in a kernel."""
    module, before = module or types.ModuleType("__main__"), sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield module
    finally:
        sys.modules["__main__"] = before
