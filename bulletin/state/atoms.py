"""Values without identity: two that are equal are as good as one."""

import enum
import math
import sys
from types import EllipsisType, NoneType, NotImplementedType
from typing import Any

#: Equal wherever they are: never in the table.
ATOMS: tuple[type, ...] = (str, bytes, int, float, complex, bool, NoneType, EllipsisType, NotImplementedType)
#: Those of which several may be equal; of each of the others Python has one.
REPEATED_ATOMS = frozenset({str, bytes, int, float, complex})


def is_atom(value: Any) -> bool:
    """Tell whether a value says all that it is, and never changes: an atom, or a member of an enumeration."""
    kind = type(value)
    return kind in ATOMS or issubclass(kind, enum.Enum)


def has_nan(data: Any) -> bool:
    """Tell whether a stream holds a NaN, which is to be the object that most people's are: `nan in found` asks for it.

    In a long stream nobody looks: it would be read many times as slowly.
    """
    return len(data) <= _MAX_SEARCHED and _NAN in bytes(data)


#: `BINFLOAT` with the NaN that Python and numpy have.
_NAN = b"G\x7f\xf8\0\0\0\0\0\0"
_MAX_SEARCHED = 2**20


def usual_nan() -> float:
    """Return numpy's NaN where numpy is imported, else that of `math`: the object that most people's NaNs are."""
    numpy: Any = sys.modules.get("numpy")
    return getattr(numpy, "nan", math.nan)
