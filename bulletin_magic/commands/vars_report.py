"""`%gpu vars` for people: what the pool holds of this notebook."""

from bulletin.state.holdings import Holding, Holdings, Home
from bulletin.units import show_size
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.output import text_table
from bulletin_magic.output.receipts import describe_place

_HEAD = ("name", "kind", "arrays", "where")
_FIGURES = {2}
_SAID = {Home.BOTH: "in the notebook and on the pool", Home.THERE: "only on the pool, for %%gpu cells to use"}


def describe_holdings(held: Holdings, lease: LeaseInfo | None, doubt: str) -> dict[str, str]:
    """A table and sentences, as a bundle of MIME types. `doubt` says why it may not be so any more; empty if it is."""
    shown = [value for value in held.values if value.home is not Home.GONE]
    gone = [value for value in held.values if value.home is Home.GONE]
    below = []
    if shown or held.nameless:
        place = describe_place(lease) if lease is not None else "the pool"
        arrays = f": {show_size(held.array_bytes)} of arrays in all" if held.array_bytes else ""
        below.append(f"{place[0].upper()}{place[1:]} has these as the last %%gpu cell left them{arrays}.")
    else:
        below.append("Nothing of this notebook is on the pool.")
    if held.nameless:
        many = "1 value is" if held.nameless == 1 else f"{held.nameless} values are"
        below.append(f"{many} there that no name here leads to any more; the next %%gpu cell drops them.")
    if held.modules:
        below.append(f"Sources of your modules are there: {', '.join(held.modules)}.")
    below += [f"{value.name} is gone: the process on the pool that held it has ended." for value in gone]
    return text_table.bundle(_HEAD, [_cells(value) for value in shown], [*below, *filter(None, [doubt])], _FIGURES)


def _cells(value: Holding) -> tuple[str, ...]:
    return value.name, value.kind, show_size(value.array_bytes) if value.array_bytes else "", _SAID[value.home]
