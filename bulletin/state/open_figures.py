"""The figures that pyplot has open, which it knows by their numbers: what one side closes is closed on the other."""

import sys
from collections.abc import Iterable
from typing import Any


def managers() -> dict[int, Any]:
    """Return pyplot's own dict of open figures by their numbers, the current one last; an empty one without pyplot."""
    helpers: Any = sys.modules.get("matplotlib._pylab_helpers")
    return helpers.Gcf.figs if hasattr(helpers, "Gcf") else {}


def open_figures() -> list[int]:
    """List the numbers of the figures that pyplot has open."""
    return list(managers())


def close_figures_but(numbers: Iterable[int]) -> None:
    """Let pyplot forget all figures but those of these numbers: the other side has closed the rest."""
    known = managers()
    for number in known.keys() - set(numbers):
        del known[number]
