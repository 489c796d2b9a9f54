"""Instances that pickle writes as their attributes, and types that others have taught it to write."""

import copyreg
import io
from collections.abc import Callable
from typing import Any

import cloudpickle

from bulletin.cpython.class_layout import count_slots, holds_slots_only, is_python_all_through

from .load_transaction import Reduced, refuse
from .reducers.containers import USUAL_STATE

#: How values of these types are written, besides those in the register of `copyreg`.
DISPATCH: dict[type, Callable[[Any], Reduced]] = {**cloudpickle.Pickler.dispatch_table, io.TextIOWrapper: refuse}


def is_plain(kind: type) -> bool:
    """Tell whether pickle's own way with instances of this class cannot fail: none of their code is called."""
    return (
        getattr(kind, "__reduce_ex__", None) is object.__reduce_ex__
        and getattr(kind, "__reduce__", None) is object.__reduce__
        and getattr(kind, "__getstate__", None) in USUAL_STATE
        and not hasattr(kind, "__getnewargs_ex__")
        and not hasattr(kind, "__getnewargs__")
        and is_python_all_through(kind)
        and holds_slots_only(kind, count_slots(kind))
        and kind not in copyreg.dispatch_table
        and kind not in DISPATCH
    )
