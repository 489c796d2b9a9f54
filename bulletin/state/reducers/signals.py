"""Signals of blinker: they list who listens by the addresses of objects, which are others on each side."""

import sys
import weakref
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .containers import instance_dict, make_instance

#: What lists them, and is made anew from the objects themselves.
_BY_ADDRESS = ("receivers", "_by_receiver", "_by_sender", "_weak_senders")


def is_signal(kind: Any) -> bool:
    """Tell whether a type is blinker's signal, or a kind of it."""
    blinker: Any = sys.modules.get("blinker.base")
    return blinker is not None and issubclass(kind, blinker.Signal)


def reduce_signal(_: Encoding, signal: Any) -> Reduced:
    """Reduce a signal to its other attributes and to who listens to whom; NotImplemented for one of another make."""
    attributes = instance_dict(signal) or {}
    if not all(name in attributes for name in _BY_ADDRESS):
        return NotImplemented
    own = {name: held for name, held in attributes.items() if name not in _BY_ADDRESS}
    made = make_instance, (RECEIVER, type(signal), False)
    return (*made, (RECEIVER, own, _connections(signal)), None, None, _fill_signal)


def _connections(signal: Any) -> list[tuple[Any, Any, bool]]:
    """List the receivers that are there, each with its sender, and whether it is held weakly."""
    blinker = sys.modules["blinker.base"]
    found = []
    for key, held in list(signal.receivers.items()):
        is_weak = isinstance(held, weakref.ref)
        receiver = held() if is_weak else held
        for sender_key in signal._by_receiver.get(key, ()) if receiver is not None else ():
            reference = signal._weak_senders.get(sender_key)
            sender = blinker.ANY if sender_key == blinker.ANY_ID else sender_key if reference is None else reference()
            if sender is not None:
                found.append((receiver, sender, is_weak))
    return found


def _fill_signal(signal: Any, state: tuple[LoadTransaction, dict[str, Any], list[tuple[Any, Any, bool]]]) -> None:
    """Give a signal its attributes, and connect each receiver."""
    transaction, own, connections = state
    transaction.alive.append(connections)  # nobody else may hold them on this side yet
    sys.modules["blinker.base"].Signal.__init__(signal)
    for receiver, sender, is_weak in connections:
        signal.connect(receiver, sender, weak=is_weak)
    vars(signal).update(own)  # behind these: with `receiver_connected` it would tell of each
