"""How single kinds of values travel: one file for each library or family.

`EXACT` is asked first, by a value's own type; then `of_family`, once per type and stream. A reducer takes the encoder
and the value, and returns what `__reduce_ex__` would, or NotImplemented for pickle's own way.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from bulletin.state.handles import Handle, reduce_handle
from bulletin.state.landing import Reduced

from . import arrays, builtins, classes, exceptions, frames, functions, tensors

Reducer: TypeAlias = Callable[[Any, Any], Reduced]

reduce_lender, reduce_own_container = builtins.reduce_lender, builtins.reduce_own_container

EXACT: dict[type, Reducer] = {**functions.EXACT, **builtins.EXACT, type: classes.reduce_class, Handle: reduce_handle}


def of_family(kind: type) -> Reducer | None:
    """The reducer for a type that `EXACT` does not list; None is pickle's own way."""
    if issubclass(kind, type):
        return classes.reduce_class
    if issubclass(kind, BaseException):
        return exceptions.reduce_exception
    if classes.is_enum(kind):
        return classes.reduce_member
    top = (kind.__module__ or "").partition(".")[0] if isinstance(kind.__module__, str) else ""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and kind is numpy.ndarray:
        return arrays.reduce_array
    if numpy is not None and kind is numpy.memmap:
        return arrays.reduce_memmap
    if numpy is not None and kind in {numpy.recarray, numpy.matrix}:
        return arrays.reduce_kind
    if torch is not None and hasattr(torch, "Tensor") and issubclass(kind, torch.Tensor):
        return tensors.reduce_tensor
    if frames.is_family(kind):
        return frames.reduce_frame
    if top in {"_io", "socket", "ssl"}:
        return builtins.family_of_io(kind)
    if builtins.is_own_container(kind):
        return builtins.reduce_own_container
    return builtins.reduce_delegating if builtins.is_delegating(kind) else None
