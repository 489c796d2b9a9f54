"""Values without identity: two that are equal are as good as one."""

from types import EllipsisType, NoneType, NotImplementedType

#: Equal wherever they are: never in the table.
ATOMS: tuple[type, ...] = (str, bytes, int, float, complex, bool, NoneType, EllipsisType, NotImplementedType)
#: Those of which several may be equal; of each of the others Python has one.
REPEATED_ATOMS = frozenset({str, bytes, int, float, complex})
