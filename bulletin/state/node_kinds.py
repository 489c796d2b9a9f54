"""Of which types the instances go into the table: those of which it matters which of several equal ones one is."""

import enum
from types import CodeType, FunctionType, GetSetDescriptorType, MethodDescriptorType

from . import reducers
from .atoms import ATOMS

#: Known by their name: never in the table.
_NAMED = (type, FunctionType, CodeType, MethodDescriptorType, GetSetDescriptorType)


def _has_identity(kind: type) -> bool:
    """Tell whether it matters which of several equal objects one is; what is known by its name comes back by that."""
    if reducers.is_buffer(kind):
        return False  # made anew each time it is asked for
    if reducers.is_dtype(kind) or kind.__name__ == "cython_function_or_method":
        return False  # what says all of it is its text, or its name
    return kind not in ATOMS and not issubclass(kind, (*_NAMED, enum.Enum))


class _Kinds(dict[type, bool]):
    """Whether instances of a type go into the table, as far as it was asked."""

    def __missing__(self, kind: type) -> bool:
        found = self[kind] = _has_identity(kind)
        return found


KINDS_OF_NODES = _Kinds()
