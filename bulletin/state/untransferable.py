"""Why values cannot travel, asked of them as they are now: `%gpu pull`. On the side that has them."""

from collections.abc import Mapping
from functools import partial

from .memory import Region, attempt
from .object_paths import Stayed
from .table import Table
from .table_diff import TableDiff


def reasons(values: Mapping[str, object], *_: object) -> list[Stayed]:
    """Find what of these values, by their names, could not go to the other side now; nothing is sent.

    More arguments are looked at by nobody: to mention them brings what the values may look up.
    """
    found: list[Stayed] = []
    for name, value in values.items():
        found += attempt(partial(_look, {name: value}))
    return found


def _look(namespace: dict[str, object], wide: list[Region]) -> list[Stayed]:
    diff = TableDiff(namespace, Table(), wide=wide)
    diff.add(namespace)
    diff.run(follow=False)
    return [stayed for stayed, _ in diff.stayed]
