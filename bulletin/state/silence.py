"""Keeps warnings quiet that only the transfer of values raises: a plain run of the cell would not have shown them."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

_OURS: Any = (*("ignore", None, Warning), None, 0)  # an object of its own: the user may have one like it


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Ignore all warnings for a while.

    Unlike `warnings.catch_warnings`, which makes Python forget what it has shown already: a warning of the user's cell
    that is to be shown once would be shown again.
    """
    filters: Any = warnings.filters
    if any(other is _OURS for other in filters):  # somebody around us does so, and will end it
        yield
        return
    try:
        filters.insert(0, _OURS)
        yield
    finally:
        filters[:] = [other for other in filters if other is not _OURS]
