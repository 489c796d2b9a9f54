"""The executor's side before a cell: its namespace becomes the notebook's, as far as the cell needs it."""

from collections.abc import Collection, Sequence
from typing import Any

from bulletin.errors import CannotSend

from . import ambient, definition_ids, modules, names, registrations
from .changes import UNSENT, Baseline
from .exchange import Buffer, Damaged, Exchange
from .exchange_reader import ExchangeReader, describe_problem
from .handles import IN_NOTEBOOK
from .name_order import put_last
from .table import Table
from .undisturbed import undisturbed

#: Kinds of ambient state that put nothing into libraries: where nothing else came, those are as they were.
_OF_NO_LIBRARY = frozenset({"random", "numpy", "torch", "folder", "argv"})


def restore(
    parts: Sequence[Buffer], namespace: dict[str, Any], table: Table, *, keep: Collection[str] = frozenset()
) -> Baseline:
    """Make the executor's namespace that of the notebook, as far as the cell needs it; all other names are absent.

    Parameters
    ----------
    parts, namespace
        What `capture` made, and the executor's namespace. Large parts may become the memory of arrays.
    table
        The executor's half of the table.
    keep
        Names of the executor's own, left alone.

    Returns
    -------
    Baseline
        For `changes` after the cell.

    Raises
    ------
    CannotSend
        If a value cannot be loaded here. Table and namespace are then empty.
    """
    kept = frozenset(keep)
    reader = ExchangeReader(namespace, table, IN_NOTEBOOK)
    try:
        exchange = Exchange.unpack(parts)
        if exchange.base == 0:
            table.clear()
            definition_ids.forget()
            registrations.forget()
        elif exchange.base != table.version:
            raise Damaged(f"it builds upon state {exchange.base} of this executor, which is at {table.version}")
        around = ambient.put_together(exchange.tail, table.ambient)
        for name in names.users(namespace, kept):
            del namespace[name]
        ambient.prepare(around, is_overlay=True)
        with undisturbed():
            reader.read(exchange)
        reader.commit()
        reader.write_memory()
    except Exception as problem:
        table.clear()
        for name in names.users(namespace, kept):
            del namespace[name]
        kind = f"value that cannot be loaded there ({describe_problem(problem)})"
        raise CannotSend(reader.at, reader.at, kind) from problem
    ambient.settle(around, is_overlay=True)
    ambient.learn_sources(exchange.tail["sources"])
    came = {name: namespace[name] for name in reader.bound if names.is_users(name)}
    reader.update_table()
    table.ambient = around
    if exchange.tail["reached"] is not None:
        table.reached = exchange.tail["reached"]
    if exchange.base == 0 or exchange.streams or not exchange.tail["ambient"].keys() <= _OF_NO_LIBRARY:
        registrations.observe(namespace)  # what it finds after the cell is what the cell has put there
    alive = list(reader.transaction.alive)
    reader.transaction.forget()
    baseline = Baseline(table, came, kept, alive, ambient.snapshot(around), modules.snapshot())
    baseline.underscores = exchange.tail["underscores"]
    baseline.unsent = exchange.tail["unsent"]
    namespace.update(dict.fromkeys(baseline.unsent, UNSENT))
    put_last(namespace, exchange.tail["order"])
    baseline.order, baseline.deletes = names.users(namespace, kept), exchange.tail["deletes"]
    roots = {oid: table.units[oid] for oid in exchange.bound.values() if oid in table.units}
    baseline.units = list(roots.values())
    baseline.definitions = [table.definitions[uid] for uid in table.reached if uid in table.definitions]
    return baseline
