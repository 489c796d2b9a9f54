"""Widgets: one and the same on both sides, whose view in the front end is known by the id of its comm."""

import sys
from collections.abc import Mapping
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced
from bulletin.state.setting_kind import shell_of_cells


def is_comm(kind: type) -> bool:
    """Tell whether a type is one of comms: ends of a connection to the front end."""
    base: Any = sys.modules.get("comm.base_comm")
    return hasattr(base, "BaseComm") and issubclass(kind, base.BaseComm)


def reduce_comm(_: Encoding, comm: Any) -> Reduced:
    """Reduce a comm to its id and its callbacks.

    Each side has one of its own, of its own kind, and neither opens it once more.
    """
    state = (RECEIVER, comm._msg_callback, comm._close_callback, comm._closed)
    return find_comm, (RECEIVER, comm.comm_id, comm.target_name), state, None, None, fill_comm


def find_comm(transaction: LoadTransaction, comm_id: str, target_name: str) -> Any:
    """Return the end of a connection on this side, or make one."""
    import comm

    transaction.take_existing()
    manager = comm.get_comm_manager()
    found = manager.comms.get(comm_id)
    if found is None:
        found = make_comm(manager, comm_id, target_name)
        transaction.undoable(_forget, manager, found)
    return found


def make_comm(manager: Any, comm_id: str, target_name: str) -> Any:
    """Make an end of a connection that is open already. It may speak at once."""
    import comm

    made: Any = comm.create_comm(comm_id=comm_id, target_name=target_name, primary=False)
    if getattr(made, "kernel", made) is None:  # a kernel's own learn it when they open, and widgets ask for it
        made.kernel = getattr(shell_of_cells(), "kernel", None)
    manager.register_comm(made)
    return made


def deliver_view_message(message: Mapping[str, Any]) -> None:
    """Pass what the view of a widget said to its comm here: the message as a kernel has it, its type in its header.

    What a callback raises is shown, as in a notebook, and is not the error of a cell.
    """
    import comm

    manager = comm.get_comm_manager()
    handlers = {"comm_msg": manager.comm_msg, "comm_close": manager.comm_close}
    kind = message["header"]["msg_type"]
    if kind in handlers:
        handlers[kind](None, "", dict(message))  # type: ignore[arg-type]  # the stream is for nothing


def _forget(manager: Any, comm: Any) -> None:
    comm._closed = True  # or its end would close the other side's too
    manager.comms.pop(comm.comm_id, None)


def fill_comm(comm: Any, state: tuple[LoadTransaction, Any, Any, bool]) -> None:
    """Set whom a comm tells what the front end says, and whether it is closed."""
    transaction, on_message, on_close, is_closed = state
    transaction.undoable(_set_comm, comm, comm._msg_callback, comm._close_callback, comm._closed)
    _set_comm(comm, on_message, on_close, is_closed)


def _set_comm(comm: Any, on_message: Any, on_close: Any, is_closed: bool) -> None:
    comm._msg_callback, comm._close_callback, comm._closed = on_message, on_close, is_closed


def is_widget(kind: type) -> bool:
    """Tell whether a type is one of widgets of ipywidgets."""
    module: Any = sys.modules.get("ipywidgets.widgets.widget")
    return hasattr(module, "Widget") and issubclass(kind, module.Widget)


def reduce_widget(_: Encoding, widget: Any) -> Reduced:
    """Reduce a widget to its traits, and the callbacks that the user has set.

    Those of its class each side sets by itself.
    """
    made_by, args, state, *_rest = widget.__reduce_ex__(5)
    state = {name: value for name, value in state.items() if name not in _SET_BY_CLASS}
    return made_by, args, (RECEIVER, state, _users_callbacks(widget)), None, None, fill_widget


_SET_BY_CLASS = frozenset({"_trait_notifiers", "_trait_validators"})


def _users_callbacks(widget: Any) -> dict[Any, dict[Any, list[Any]]]:
    from traitlets import EventHandler

    found: dict[Any, dict[Any, list[Any]]] = {}
    for name, kinds in widget._trait_notifiers.items():
        for kind, called in kinds.items():
            kept = [one for one in called if not isinstance(one, EventHandler)]
            if kept:
                found.setdefault(name, {})[kind] = kept
    return found


def fill_widget(widget: Any, state: tuple[LoadTransaction, dict[str, Any], dict[Any, dict[Any, list[Any]]]]) -> None:
    """Set the traits of a widget without telling anybody, and its callbacks.

    It takes its place among the widgets of this side.
    """
    from ipywidgets.widgets import widget as module

    transaction, attributes, callbacks = state
    transaction.undoable(_set_attributes, widget, dict(vars(widget)))
    widget.__setstate__({**attributes, "_trait_notifiers": {}, "_trait_validators": {}})
    for name, kinds in callbacks.items():
        for kind, called in kinds.items():
            widget._trait_notifiers.setdefault(name, {}).setdefault(kind, []).extend(called)
    if widget.comm is not None:
        module._instances[widget.comm.comm_id] = widget


def _set_attributes(widget: Any, attributes: dict[str, Any]) -> None:
    vars(widget).clear()
    vars(widget).update(attributes)
