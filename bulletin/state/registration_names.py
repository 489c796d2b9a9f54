"""The names by which what was put into libraries travels, and those by which people know it."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from .names import REGISTERED
from .object_paths import Stayed


def named(found: Mapping[str, Any]) -> dict[str, Any]:
    """Give the values of libraries the names by which they travel."""
    return {REGISTERED + library: of_library for library, of_library in found.items()}


def told(left: Iterable[Stayed]) -> Iterable[Stayed]:
    """Name, in what could not be loaded here, libraries as people do; leave out those that are not here at all."""
    for one in left:
        library = one.name.removeprefix(REGISTERED)
        if library == one.name:
            yield one
        elif library in sys.modules:
            yield Stayed(library, one.kind, f"what was set in {library}", one.why)
