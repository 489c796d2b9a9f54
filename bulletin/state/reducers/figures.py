"""Figures of matplotlib and plotly: looking at one does not change it, and its parts stay its parts."""

import importlib
import itertools
import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced
from bulletin.state.open_figures import managers


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


def is_figure(kind: type) -> bool:
    """Tell whether a type is one of matplotlib's figures, which pyplot may know by a number."""
    figure: Any = sys.modules.get("matplotlib.figure")
    return hasattr(figure, "Figure") and issubclass(kind, figure.Figure)


def reduce_figure(_: Encoding, figure: Any) -> Reduced:
    """Reduce a figure to its state, and its number with pyplot; its own way gives it a new one each time."""
    made_by, args, state, *rest = figure.__reduce_ex__(5)
    manager, known = _manager_of(figure), managers()
    known_by = (manager.num, next(reversed(known.values())) is manager) if manager is not None else None
    if isinstance(state, dict):
        state = {name: held for name, held in state.items() if name != "_restore_to_pylab"}
    return made_by, args, (RECEIVER, state, known_by), *(*rest, None, None)[:2], fill_figure


def _manager_of(figure: Any) -> Any:
    return next((manager for manager in managers().values() if manager.canvas.figure is figure), None)


def fill_figure(figure: Any, state: tuple[LoadTransaction, Any, tuple[int, bool] | None]) -> None:
    """Give a figure its state, and let pyplot know it by its number, if that is free, while the other side does."""
    transaction, own, known_by = state
    figure.__setstate__(own)
    known, manager = managers(), _manager_of(figure)
    transaction.undoable(_set_managers, list(known.items()))
    if manager is not None:
        figure.canvas = manager.canvas
    if known_by is None:
        if manager is not None:
            known.pop(manager.num, None)
        return
    current = next(reversed(known), None)
    gcf: Any = importlib.import_module("matplotlib._pylab_helpers").Gcf
    if manager is None:
        number = known_by[0] if known_by[0] not in known else max(known) + 1
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
        gcf._set_new_active_manager(pyplot._get_backend_mod().new_figure_manager_given_figure(number, figure))
    if known_by[1]:
        gcf.set_active(_manager_of(figure))
    elif current is not None and current in known:
        gcf.set_active(known[current])


def _set_managers(items: list[tuple[int, Any]]) -> None:
    known = managers()
    known.clear()
    known.update(items)
