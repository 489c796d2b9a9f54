"""Functions that numba compiles: the Python function travels, and each side compiles it when it is called there.

Numba's own way copies the globals that the function reads, as they are at the time; here it reads the notebook's.
"""

import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced


def is_dispatcher(kind: type) -> bool:
    """Tell whether a type is one of numba's functions that are compiled for the types they are called with."""
    dispatcher: Any = sys.modules.get("numba.core.dispatcher")
    return hasattr(dispatcher, "Dispatcher") and issubclass(kind, dispatcher.Dispatcher)


def reduce_dispatcher(_: Encoding, dispatcher: Any) -> Reduced:
    """Reduce a compiled function to the Python function, its options, and the signatures it was limited to."""
    return make_dispatcher, (RECEIVER, type(dispatcher), dispatcher._reduce_states())


def make_dispatcher(transaction: LoadTransaction, kind: Any, states: dict[str, Any]) -> Any:
    """Return the existing compiled function if it is of the same Python function and options; else make a new one."""
    old = transaction.take_existing()
    if type(old) is kind and all(_is_same(held, old._reduce_states().get(name)) for name, held in states.items()):
        return old
    made = kind._rebuild(**states)
    if old is not None and old is not made:
        transaction.replaced.append((old, made))
    return made


def _is_same(one: object, other: object) -> bool:
    return one is other or (type(one) is type(other) and not callable(one) and one == other)
