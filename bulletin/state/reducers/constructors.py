"""Values whose class decides in its `__new__` what it makes: not every one can be had by calling the class once more.

An expression of sympy that was made with `evaluate=False` says of itself what one says that is to be evaluated.
"""

from types import FunctionType
from typing import Any

from bulletin.cpython.pickle_memo import new_object
from bulletin.state.inplace import is_all_attributes, slots_held
from bulletin.state.load_transaction import Reduced

from .functions import is_importable

#: Of each class, who may make its instances: the class, and those of its bases that have a `__new__` in Python.
_makers: dict[type, tuple[type, ...]] = {}


def exact(value: Any, reduced: Reduced) -> Reduced:
    """Return how a value travels that its class is to make: by the nearest base that makes it of these arguments.

    What such a base leaves empty comes with it. Where nobody makes it, it goes as it says.
    """
    kind = type(value)
    args = _arguments(kind, reduced)
    if args is None:
        return reduced
    for maker in _makers_of(kind):
        made = _try(maker, value, args)
        if made is not None:
            return reduced if maker is kind else _made_by(maker, value, made, args, reduced)
    return reduced


def _try(maker: Any, value: Any, args: tuple[Any, ...]) -> Any:
    """Return what a class makes of these arguments for the class of a value, if it says the same; else None."""
    kind = type(value)
    try:
        made = maker.__new__(kind, *args)
        return made if made is value or (type(made) is kind and _says_the_same(made, args)) else None
    except Exception:  # noqa: BLE001  the library's own code, which is asked for what it may not make
        return None


def _arguments(kind: type, reduced: Any) -> tuple[Any, ...] | None:
    """Return what the class is called with to make a value of it; None where something else makes it, or none is."""
    if not isinstance(reduced, tuple) or len(reduced) > 5 or not isinstance(reduced[1], tuple):
        return None
    made_by, args = reduced[:2]
    if made_by is new_object and args[0] is kind:
        args = args[1:]
    elif made_by is not kind:
        return None
    return args or None


def _makers_of(kind: Any) -> tuple[type, ...]:
    found = _makers.get(kind)
    if found is None:
        is_asked = kind.__init__ is object.__init__ and is_importable(kind) and is_all_attributes(kind)
        bases = [base for base in kind.__mro__ if isinstance(vars(base).get("__new__"), staticmethod | FunctionType)]
        found = _makers[kind] = (kind, *bases[1:]) if is_asked and bases else ()
    return found


def _says_the_same(made: Any, args: tuple[Any, ...]) -> bool:
    said = _arguments(type(made), made.__reduce_ex__(5))
    return said is not None and len(said) == len(args) and all(map(_is_same, said, args))


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))


def _made_by(maker: type, value: Any, made: Any, args: tuple[Any, ...], reduced: Any) -> Reduced:
    held = {name for name, _ in slots_held(made)}
    left = {name: part for name, part in slots_held(value) if name not in held}
    return (make_by, (maker, type(value), tuple(left), tuple(left.values()), *args), *reduced[2:])


def make_by(maker: Any, kind: Any, names: tuple[str, ...], left: tuple[Any, ...], *args: Any) -> Any:
    """Make what `maker` makes of these arguments for a class, with those slots that it leaves empty."""
    made = maker.__new__(kind, *args)
    for name, held in zip(names, left, strict=True):
        object.__setattr__(made, name, held)
    return made
