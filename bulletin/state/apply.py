"""The notebook's side after a cell: all of what the cell changed is taken over, or nothing."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from bulletin.errors import CannotReturn

from . import ambient, modules, registration_names
from .capture import Captured
from .exchange import Buffer, Damaged, Exchange
from .exchange_reader import ExchangeReader, describe_problem
from .handles import ON_WORKER
from .interrupt_guard import InterruptGuard
from .meanwhile import Meanwhile, lay_aside
from .object_paths import Stayed
from .table import Table
from .undisturbed import undisturbed


@dataclass(frozen=True, slots=True)
class Applied:
    """What a cell has done to the notebook."""

    bound: tuple[str, ...]
    deleted: tuple[str, ...]
    extra: dict[str, Any]
    stayed: list[Stayed]
    #: With `meanwhile`: values of names that the notebook keeps as they are, and names of values that changed in place.
    aside: dict[str, Any]
    changed: tuple[str, ...]


def apply(
    parts: Sequence[Buffer], namespace: dict[str, Any], *, sent: Captured, meanwhile: Meanwhile | None = None
) -> Applied:
    """Take what a cell changed into the notebook: all of it, or nothing.

    Parameters
    ----------
    parts, namespace
        What `changes` made, and the notebook's namespace.
    sent
        What `capture` gave for this cell. Its table is in step with the executor's afterwards, or empty.
    meanwhile
        What `depart` gave, where the notebook went on while the cell ran. Values that both have changed are then laid
        aside, and so is the value of a name that the notebook has bound since. Settings, the environment and random
        states stay the notebook's own.

    Raises
    ------
    CannotReturn
        If something cannot be loaded here. The notebook and all its objects are then as before.
    KeyboardInterrupt
        If the stop button was pressed; then the same holds, or all of it has landed.
    """
    try:
        with InterruptGuard() as interrupts, undisturbed():
            return _land(parts, namespace, sent, interrupts, meanwhile)
    except BaseException:  # also where the stop button was pressed too late to undo anything
        sent.table.clear()
        raise


def _land(
    parts: Sequence[Buffer],
    namespace: dict[str, Any],
    sent: Captured,
    interrupts: InterruptGuard,
    meanwhile: Meanwhile | None,
) -> Applied:
    table = sent.table
    reader = ExchangeReader(namespace, table, ON_WORKER, may_leave=True)
    reader.looked_at = sent.diff.units.values()
    try:
        exchange = _take_in(parts, sent, reader, interrupts, meanwhile)
    except BaseException as problem:
        reading, failed = reader.reading, reader.undo()
        drawn = {kind: found for kind, found in sent.around.items() if kind in _DRAWN}
        with suppress(Exception):  # a generator of another kind than it was when the cell was sent
            ambient.settle(drawn, is_overlay=False)
        if not isinstance(problem, Exception):
            raise
        raise CannotReturn(reading, describe_problem(problem, failed)) from problem
    reader.write_memory()
    reader.delete()
    if meanwhile is not None:
        exchange.tail["ambient"] = {}
    unsettled = _settle(exchange, reader, sent.imports)
    try:
        interrupts.release()
        reader.update_table()
        if exchange.tail["held"] is not None:
            table.held_there = frozenset(exchange.tail["held"])
        reader.transaction.forget()
        sent.forget()
    except Exception:  # noqa: BLE001  the values are here; what is lost is what both sides know of them
        table.clear()
    finally:
        interrupts.hold()
    stayed = [*exchange.tail["stayed"], *unsettled]
    return Applied(tuple(reader.bound), tuple(reader.gone), reader.extra, stayed, reader.laid_aside, reader.changed)


def _take_in(
    parts: Sequence[Buffer],
    sent: Captured,
    reader: "ExchangeReader",
    interrupts: InterruptGuard,
    meanwhile: Meanwhile | None,
) -> Exchange:
    """Do all that can fail and can be undone: unpack, load, and change definitions and memory of devices.

    SIGINT is held again in the end, whether this fails or not.
    """
    try:
        interrupts.release()
        sent.commit()
        exchange = Exchange.unpack(parts)
        if exchange.base != sent.table.version:
            raise Damaged(f"it builds upon state {exchange.base} of this notebook, which is at {sent.table.version}")
        if meanwhile is not None:
            reader.aside = lay_aside(exchange, reader.namespace, sent, meanwhile)
        else:
            _prepare(exchange.tail["ambient"], reader)
        reader.read(exchange)
        reader.commit()
        exchange.tail["stayed"] = [*exchange.tail["stayed"], *registration_names.told(reader.left)]
        interrupts.hold()
    except BaseException:
        interrupts.hold()
        raise
    return exchange


def _prepare(changed: ambient.Ambient, reader: "ExchangeReader") -> None:
    """Set, undoably, what libraries look at while values load, as far as it can be set; `_settle` says what cannot."""
    early = {kind: found for kind, found in changed.items() if kind in _EARLY}
    if early:
        back = partial(ambient.prepare, ambient.reverse_of(early), is_overlay=False)
        reader.transaction.undoable(back)
        with suppress(Exception):
            ambient.prepare(early, is_overlay=False)


#: Kinds of ambient state that are set before values load.
_EARLY = ("folder", "argv", "environ", "settings")
#: What code of the user's that runs while its values load may change in passing.
_DRAWN = ("random", "numpy", "torch", "folder")
#: What to call the kinds of ambient state, in the order in which they are set: the time zone is in the environment.
_CALLED = {
    "random": "random",
    "numpy": "numpy.random",
    "torch": "torch.random",
    "folder": "os.getcwd()",
    "argv": "sys.argv",
    "environ": "os.environ",
    "settings": "the settings of libraries",
}


def _settle(exchange: Exchange, reader: ExchangeReader, imports: Sequence[str]) -> list[Stayed]:
    """Bring this process into the ambient state that the cell left, and return what of it could not be set."""
    steps: list[tuple[str, Callable[[], None]]] = []
    changed = exchange.tail["ambient"]
    for kind, called in _CALLED.items():
        if kind in changed:
            steps.append((called, partial(ambient.settle, {kind: changed[kind]}, is_overlay=False)))
    steps.append(("the source of a cell", partial(ambient.learn_sources, exchange.tail["sources"])))
    steps.append(("a module that the cell imports", partial(_import_inside, imports, reader.namespace)))
    told, table = reader.told, reader.table
    if isinstance(told, modules.Changes):
        known, table.modules = table.modules, modules.Known()  # should it fail, nobody knows what the executor has
        steps.append(("a module of the notebook", partial(_apply_modules, told, known, table)))
    failed = []
    for called, step in steps:
        try:
            step()
        except Exception as problem:  # noqa: BLE001  a library of another version may raise anything
            failed.append(Stayed(called, "state that cannot be set here", called, describe_problem(problem)))
    return failed


def _import_inside(imports: Sequence[str], namespace: Mapping[str, object]) -> None:
    """Import modules inside packages that the notebook has under a name, as `import a.b` makes `b` a part of `a`."""
    missing = [name for name in imports if "." in name and name not in sys.modules]
    held = {value.__name__ for value in list(namespace.values()) if isinstance(value, ModuleType)} if missing else ()
    for name in missing:
        if name.partition(".")[0] in held:
            with suppress(ImportError):  # the cell did not come to it, or caught that
                importlib.import_module(name)


def _apply_modules(told: modules.Changes, known: modules.Known, table: Table) -> None:
    table.modules = modules.apply(told, known)
