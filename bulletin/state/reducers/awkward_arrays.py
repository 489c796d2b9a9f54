"""Arrays of awkward that look at an array of numpy's (`ak.from_numpy`): they go on doing so.

The library's own way copies the memory. With lists or records inside it leaves out what is not seen, and is kept.
"""

import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, Reduced

from .containers import fill_user_container, instance_dict, make_instance

#: What is made anew when it is asked for, with addresses of this process.
_OF_ONE_PROCESS = frozenset({"_cpp_type", "_generator", "_lookup", "_numbaview"})


def is_array(kind: type) -> bool:
    """Tell whether a type is awkward's array."""
    return kind.__module__ == "awkward.highlevel" and kind.__name__ == "Array"


def reduce_array(_: Encoding, value: Any) -> Reduced:
    """Reduce an array over one of numpy's to its attributes; NotImplemented for any other."""
    attributes = instance_dict(value) or {}
    memory = getattr(attributes.get("_layout"), "_data", None)
    if type(memory) is not sys.modules["numpy"].ndarray:
        return NotImplemented
    own = {name: None if name in _OF_ONE_PROCESS else held for name, held in attributes.items()}
    made = make_instance, (RECEIVER, type(value), False)
    return (*made, (RECEIVER, None, own, False, [], None), None, None, fill_user_container)
