"""`%gpu pull`: what is only on the pool is asked once more to come, and what does not come says why."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FunctionType, ModuleType

from bulletin.errors import name_kind
from bulletin.state import Stayed
from bulletin.state.holdings import Holding, Holdings, Home
from bulletin.state.names import OUTCOME
from bulletin.state.object_paths import path_to
from bulletin.state.untransferable import reasons
from bulletin.units import show_size
from bulletin_magic.commands.push_and_reset import is_or_are, join_names
from bulletin_magic.connection.deliveries import CellFinished
from bulletin_magic.running.remote_call import source_of_call

#: What pickle says of a type, and our reducers of a value.
_UNABLE = re.compile(r"cannot pickle (?:'([\w.]+)' object|(.+))")
_VARIABLE = re.compile(r"\w+")


def find_remote_only(holdings: Holdings, names: Sequence[str], namespace: Mapping[str, object]) -> dict[str, Holding]:
    """Return variables that are not, or not whole, in the notebook, each with what it lacks. Of `names`, or of all."""
    found: dict[str, Holding] = {}
    for value in holdings.values:
        root = _VARIABLE.match(value.name)
        if value.home is Home.BOTH or root is None or root[0] not in namespace:
            continue
        if not names or root[0] in names:
            found.setdefault(root[0], value)
        for name in names:  # it is told once, by whatever path; others may lead to it, too
            path = path_to(name, namespace[name], namespace[root[0]]) if root[0] == value.name else None
            if path is not None:
                found.setdefault(name, replace(value, name=path))
    return found


def build_source(names: Sequence[str], holdings: Holdings, namespace: Mapping[str, object]) -> str:
    """Write the cell that mentions the names, and asks what of them cannot come; its answer is under `OUTCOME`."""
    values = ", ".join(f"{name!r}: {name}" for name in names)
    beside = [
        value.name
        for value in holdings.values
        if value.name not in names and isinstance(namespace.get(value.name), FunctionType | ModuleType | type)
    ]
    return f"{OUTCOME} = {source_of_call(reasons, [f'{{{values}}}', *beside])}"


def describe_nothing_to_pull(names: Sequence[str]) -> str:
    """Say that nothing is to be done."""
    if not names:
        return "Nothing of this notebook is only on the pool."
    return f"{join_names(names)} {is_or_are(names)} in the notebook already."


def describe_pulled(names: Sequence[str], stayed: Sequence[Stayed], finished: CellFinished) -> list[str]:
    """Return a line for what is here now, and one for each variable that is not, with why."""
    stayed_by_name = {one.name: one for one in reversed(stayed)}
    came = [name for name in names if name not in stayed_by_name]
    lines = []
    if came:
        size = show_size(finished.returned_bytes)
        lines.append(f"{join_names(came)} {is_or_are(came)} in the notebook now; {size} came.")
    return [*lines, *(describe_stayed_with_reason(stayed_by_name[name]) for name in names if name in stayed_by_name)]


def describe_stayed_with_reason(stayed: Stayed) -> str:
    """Write one sentence about a value that could not come, and why."""
    unable = _UNABLE.fullmatch(stayed.why)
    why = f": {stayed.why.rstrip('.')}" if stayed.why else ""
    if unable is not None:
        what = name_kind(unable[1].rpartition(".")[2]) if unable[1] else unable[2]
        why = f": Python has no way to send {'one' if what == name_kind(stayed.kind) else what}"
    return f"{stayed.path} is {name_kind(stayed.kind)} and stays on the pool{why}."
