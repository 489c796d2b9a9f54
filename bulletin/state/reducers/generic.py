"""Values of which no file here knows: what they say of themselves, where that is enough."""

from types import FunctionType
from typing import Any

from bulletin.state.load_transaction import Reduced

from . import left_out
from .constructors import exact
from .containers import reduce_user_container, says_too_little
from .named import by_name
from .unwilling import REFUSALS, reduce_unwilling


def reduce_generic(encoder: Any, value: Any) -> Reduced:
    """Ask the value for its reduction, as pickle would, so that what fails fails here."""
    kind = type(value)
    by_type = encoder.dispatch_table.get(kind)
    if by_type is not None:
        return by_type(value)
    if issubclass(kind, type) or kind is FunctionType:
        return NotImplemented
    try:
        found = value.__reduce_ex__(5)
        if isinstance(found, str):
            return by_name(value, found)
    except REFUSALS as refusal:
        return reduce_unwilling(encoder, value, refusal)
    if says_too_little(value, found) or left_out.shares_parts(value) or left_out.is_made_anew(encoder, value):
        return reduce_user_container(encoder, value)
    if left_out.holds_itself(encoder, value, found):
        return reduce_user_container(encoder, value)
    return left_out.with_observers(encoder, value, exact(value, found))
