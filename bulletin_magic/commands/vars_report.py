"""`%gpu vars` for people: what the pool holds of this notebook."""

from bulletin.state.holdings import Holding, Holdings, Home
from bulletin.units import show_size
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.output import text_table
from bulletin_magic.output.receipts import describe_slots

_HEAD = ("name", "kind", "arrays", "where")
_FIGURES = {2}
_LOCATIONS = {Home.BOTH: "in the notebook and on the pool", Home.THERE: "only on the pool, for %%gpu cells to use"}


def describe_holdings(holdings: Holdings, lease: LeaseInfo | None, doubt: str) -> dict[str, str]:
    """Return a table and sentences as a bundle of MIME types. `doubt` says why it may be out of date, or is empty."""
    present = [value for value in holdings.values if value.home is not Home.GONE]
    gone = [value for value in holdings.values if value.home is Home.GONE]
    below = []
    if present or holdings.nameless:
        owner = describe_slots(lease) if lease is not None else "the pool"
        arrays = f": {show_size(holdings.array_bytes)} of arrays in all" if holdings.array_bytes else ""
        below.append(f"{owner[0].upper()}{owner[1:]} has these as the last %%gpu cell left them{arrays}.")
    else:
        below.append("Nothing of this notebook is on the pool.")
    if holdings.nameless:
        many = "1 value is" if holdings.nameless == 1 else f"{holdings.nameless} values are"
        below.append(f"{many} there that no name here leads to any more; the next %%gpu cell drops them.")
    if holdings.modules:
        below.append(f"Sources of your modules are there: {', '.join(holdings.modules)}.")
    below += [f"{value.name} is gone: the process on the pool that held it has ended." for value in gone]
    return text_table.as_bundle(_HEAD, [_cells(value) for value in present], [*below, *filter(None, [doubt])], _FIGURES)


def _cells(value: Holding) -> tuple[str, ...]:
    return value.name, value.kind, show_size(value.array_bytes) if value.array_bytes else "", _LOCATIONS[value.home]
