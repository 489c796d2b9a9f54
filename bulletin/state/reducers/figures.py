"""Figures of matplotlib and plotly: looking at one does not change it, and its parts stay its parts."""

import importlib
import itertools
import sys
from collections.abc import Iterable
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced


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
    manager, managers = _manager_of(figure), _managers()
    known_by = (manager.num, next(reversed(managers.values())) is manager) if manager is not None else None
    if isinstance(state, dict):
        state = {name: held for name, held in state.items() if name != "_restore_to_pylab"}
    return made_by, args, (RECEIVER, state, known_by), *(*rest, None, None)[:2], fill_figure


def _managers() -> dict[int, Any]:
    """Return pyplot's figures by their numbers, the current one last."""
    helpers: Any = sys.modules.get("matplotlib._pylab_helpers")
    return helpers.Gcf.figs if hasattr(helpers, "Gcf") else {}


def open_figures() -> list[int]:
    """List the numbers of the figures that pyplot has open."""
    return list(_managers())


def close_figures_but(numbers: Iterable[int]) -> None:
    """Let pyplot forget all figures but those of these numbers: the other side has closed the rest."""
    managers = _managers()
    for number in managers.keys() - set(numbers):
        del managers[number]


def _manager_of(figure: Any) -> Any:
    return next((manager for manager in _managers().values() if manager.canvas.figure is figure), None)


def fill_figure(figure: Any, state: tuple[LoadTransaction, Any, tuple[int, bool] | None]) -> None:
    """Give a figure its state, and let pyplot know it by its number, if that is free, while the other side does."""
    transaction, own, known_by = state
    figure.__setstate__(own)
    managers, manager = _managers(), _manager_of(figure)
    transaction.undoable(_set_managers, list(managers.items()))
    if manager is not None:
        figure.canvas = manager.canvas
    if known_by is None:
        if manager is not None:
            managers.pop(manager.num, None)
        return
    current = next(reversed(managers), None)
    gcf: Any = importlib.import_module("matplotlib._pylab_helpers").Gcf
    if manager is None:
        number = known_by[0] if known_by[0] not in managers else max(managers) + 1
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
        gcf._set_new_active_manager(pyplot._get_backend_mod().new_figure_manager_given_figure(number, figure))
    if known_by[1]:
        gcf.set_active(_manager_of(figure))
    elif current is not None and current in managers:
        gcf.set_active(managers[current])


def _set_managers(items: list[tuple[int, Any]]) -> None:
    managers = _managers()
    managers.clear()
    managers.update(items)
