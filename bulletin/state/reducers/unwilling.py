"""Values of libraries that refuse to pickle, though all that they are can be seen and can travel.

A class that says no fears for what pickle would make of it in another version, or in another program. Here both sides
are one program: an instance that is nothing but attributes is as any other.
"""

import pickle
import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.inplace import is_all_attributes, slots_held
from bulletin.state.load_transaction import Reduced, Unpicklable

from . import array_kinds, proxies
from .containers import instance_dict, reduce_user_container

#: What classes raise that refuse. Others mean that something went wrong.
REFUSALS = (TypeError, NotImplementedError, pickle.PicklingError)


def reduce_unwilling(encoder: Encoding, value: Any, refusal: Exception) -> Reduced:
    """Reduce an instance to its attributes and slots, where all of them can travel; else raise what it refused with.

    An array of such a class is as any other, with its attributes. What the notebook's own code refuses stays refused.
    """
    kind = type(value)
    if _is_said_by_notebook(kind):
        raise refusal
    if array_kinds.is_array(kind) and not value.dtype.hasobject:
        return array_kinds.reduce_seen(encoder, value)
    reduced = proxies.reduce_view(value)
    if reduced is not None:
        return reduced
    home = kind.__module__ if isinstance(kind.__module__, str) else ""
    if home.partition(".")[0] in sys.stdlib_module_names or not is_all_attributes(kind):
        raise refusal
    if not encoder.try_to_send(value, (instance_dict(value), slots_held(value))):
        raise Unpicklable(str(refusal)) from refusal
    return reduce_user_container(encoder, value)


def _is_said_by_notebook(kind: type) -> bool:
    sayers = [base for base in kind.__mro__ if base is not object and not _SAYS.isdisjoint(vars(base))]
    said = [vars(base)[name] for base in sayers[:1] for name in _SAYS if name in vars(base)]
    return any(getattr(one, "__globals__", {}).get("__name__") in {"__main__", "__mp_main__"} for one in said)


_SAYS = frozenset({"__reduce__", "__reduce_ex__", "__getstate__"})
