"""Why values cannot travel, asked of them as they are now: `%gpu pull`. On the side that has them."""

from collections.abc import Mapping
from functools import partial

from .memory import Region
from .report import Stayed
from .survey import Survey, attempt
from .table import Table


def reasons(values: Mapping[str, object], *_: object) -> list[Stayed]:
    """What of these values, by their names, could not go to the other side now; nothing is sent.

    More arguments are looked at by nobody: to mention them brings what the values may look up.
    """
    found: list[Stayed] = []
    for name, value in values.items():
        found += attempt(partial(_look, {name: value}))
    return found


def _look(namespace: dict[str, object], wide: list[Region]) -> list[Stayed]:
    survey = Survey(namespace, Table(), wide=wide)
    survey.add(namespace)
    survey.run(follow=False)
    return [stayed for stayed, _ in survey.stayed]
