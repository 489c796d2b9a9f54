"""Exceptions: with their class, arguments, attributes and causes, without running an `__init__` of the user's."""

from types import WrapperDescriptorType
from typing import TYPE_CHECKING, Any

from bulletin.state.landing import Reduced

if TYPE_CHECKING:
    from bulletin.state.codec import Encoder

#: Attributes that live outside `__dict__` and `args`.
_EXTRA = {
    ImportError: ("name", "path"),
    AttributeError: ("name",),
    NameError: ("name",),
    SystemExit: ("code",),
    StopIteration: ("value",),
}
_OWN_REDUCE = (BaseException.__reduce__, OSError.__reduce__, ImportError.__reduce__)


def reduce_exception(_: "Encoder", error: BaseException) -> Reduced:
    """Unless the class says itself how it travels."""
    cls = type(error)
    if cls.__reduce__ not in _OWN_REDUCE or cls.__reduce_ex__ is not object.__reduce_ex__:
        return NotImplemented
    args = error.__reduce__()[1]
    extra = [
        (name, getattr(error, name)) for base, names in _EXTRA.items() if isinstance(error, base) for name in names
    ]
    links = (error.__cause__, error.__context__, error.__suppress_context__)
    return make_exception, (cls, args), (dict(error.__dict__), extra, links), None, None, fill_exception


def make_exception(cls: Any, args: tuple[Any, ...]) -> BaseException:
    """An exception as its class would have left it, though only the built-in part of it runs."""
    if isinstance(cls.__init__, WrapperDescriptorType) and not _makes_itself(cls):
        made: BaseException = cls(*args)
        return made
    builtin: Any = next(base for base in cls.__mro__ if base.__module__ == "builtins")
    made = builtin.__new__(cls, *args)
    builtin.__init__(made, *args)
    return made


def _makes_itself(cls: type) -> bool:
    return any("__new__" in vars(base) for base in cls.__mro__ if base.__module__ != "builtins")


def fill_exception(
    error: BaseException, state: tuple[dict[str, Any], list[tuple[str, Any]], tuple[Any, Any, bool]]
) -> None:
    """What is known of it besides its arguments."""
    attributes, extra, links = state
    error.__dict__.update(attributes)
    for name, value in extra:
        setattr(error, name, value)
    error.__cause__, error.__context__, error.__suppress_context__ = links
