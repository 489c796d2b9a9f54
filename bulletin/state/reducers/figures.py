"""Figures of matplotlib and plotly: looking at one does not change it, and its parts stay its parts."""

import itertools
import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import Reduced


def is_registry(kind: type) -> bool:
    """Tell whether a type is the one that keeps the callbacks of a figure."""
    return kind.__module__ == "matplotlib.cbook" and kind.__name__ == "CallbackRegistry"


def reduce_registry(_: Encoding, registry: Any) -> Reduced:
    """Reduce a registry to its own state, and put its counter back.

    Each time a registry is asked for its state it takes a number from that counter, and would seem changed.
    """
    following = int(repr(registry._cid_gen).removeprefix("count(").removesuffix(")"))
    made_by, args, state, *rest = registry.__reduce_ex__(5)
    registry._cid_gen = itertools.count(following)
    return made_by, args, {**state, "_cid_gen": following}, *rest


def is_part_of_plot(kind: type) -> bool:
    """Tell whether a type is one of plotly's figures or their parts.

    Plotly's own way makes new parts from the figure's properties, and who holds one holds a copy. As any instances they
    keep what leads from one to the other.
    """
    base: Any = sys.modules.get("plotly.basedatatypes")
    return hasattr(base, "BaseFigure") and issubclass(kind, (base.BaseFigure, base.BasePlotlyType))
