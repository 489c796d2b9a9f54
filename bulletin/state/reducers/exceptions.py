"""Exceptions: with their class, arguments, attributes and causes, without running an `__init__` of the user's."""

from types import BuiltinFunctionType, FunctionType, MemberDescriptorType
from typing import Any

from bulletin.cpython.class_layout import is_python_class
from bulletin.state.encoding import Encoding
from bulletin.state.inplace import empty_attributes
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .functions import is_importable

#: Attributes that live outside `__dict__` and `args`.
_EXTRA = {
    ImportError: ("name", "path"),
    AttributeError: ("name",),
    NameError: ("name",),
    SystemExit: ("code",),
    StopIteration: ("value",),
}
_UNSET = object()
_OWN_REDUCE = (BaseException.__reduce__, OSError.__reduce__, ImportError.__reduce__)


def reduce_exception(encoder: Encoding, error: BaseException) -> Reduced:
    """Reduce an exception to its class, arguments, attributes and causes.

    If its class says itself how it travels it is left to pickle; but not where a library's says so and all that it has
    can travel, of which its pickle makes texts.
    """
    cls = type(error)
    if cls.__reduce_ex__ is not object.__reduce_ex__:
        return NotImplemented
    if cls.__reduce__ not in _OWN_REDUCE and not (
        isinstance(cls.__reduce__, FunctionType)
        and is_importable(cls)
        and not _is_made_in_c(cls)
        and encoder.try_to_send(error, (error.args, error.__dict__))
    ):
        return NotImplemented
    args = error.args if _is_made_in_c(cls) else _made_of(error)
    extra = [
        (name, getattr(error, name)) for base, names in _EXTRA.items() if isinstance(error, base) for name in names
    ]
    extra += [(name, getattr(error, name)) for name in _slots(cls) if hasattr(error, name)]
    links = (error.__cause__, error.__context__, error.__suppress_context__)
    shares_dict = id(error) in encoder.dict_sharers
    args_now = getattr(error, "args", ())  # a class may have a slot of that name
    attributes = error.__dict__ if shares_dict else dict(error.__dict__)
    state = (RECEIVER, args_now, attributes, shares_dict, extra, links)
    return make_exception, (RECEIVER, cls, args), state, None, None, fill_exception


def _is_made_in_c(cls: type) -> bool:
    """Tell whether code in C, or Rust, makes an exception, and may keep something of it where nobody else looks."""
    ways = (vars(base).get("__new__") for base in cls.__mro__ if base.__module__ != "builtins")
    return any(isinstance(way, BuiltinFunctionType) for way in ways)


def _made_of(error: BaseException) -> tuple[Any, ...]:
    """Return what the built-in part of an exception must be made of; a subclass may have been made of more."""
    if isinstance(error, BaseExceptionGroup):
        return error.message, error.exceptions
    built_in = OSError if isinstance(error, OSError) else BaseException
    return built_in.__reduce__(error)[1] if isinstance(error, _MADE_OF_ARGS) else ()  # type: ignore[return-value]


def _slots(cls: type) -> list[str]:
    """List what the classes of an exception, those written in Python, keep in slots."""
    return [
        name
        for base in cls.__mro__
        if is_python_class(base)
        for name, value in vars(base).items()
        if isinstance(value, MemberDescriptorType)
    ]


def make_exception(transaction: LoadTransaction, cls: Any, args: tuple[Any, ...]) -> BaseException:
    """Empty the existing exception, or make one as its class would have left it.

    Of a new one only the built-in part of its class runs, and what of it is in C.
    """
    old = transaction.take_existing()
    if type(old) is cls:
        empty_attributes(transaction, old)
        return old  # type: ignore[no-any-return]
    made: BaseException
    if _is_made_in_c(cls):
        made = cls.__new__(cls, *args)
        if not isinstance(cls.__init__, FunctionType):
            cls.__init__(made, *args)
        return made
    builtin: Any = next(base for base in cls.__mro__ if base.__module__ == "builtins")
    made = builtin.__new__(cls, *args)
    if args:
        builtin.__init__(made, *args)
    return made


def fill_exception(
    error: BaseException,
    state: tuple[LoadTransaction, tuple[Any, ...], dict[str, Any], bool, list[tuple[str, Any]], tuple[Any, Any, bool]],
) -> None:
    """Set the arguments, attributes and causes of an exception, each of them undoable."""
    transaction, args, attributes, shares_dict, extra, links = state
    before = (error.__cause__, error.__context__, error.__suppress_context__)
    if any(one is not other for one, other in zip(before, links, strict=True)):
        transaction.undoable(_link, error, *before)
        _link(error, *links)
    for name, value in [("args", args), *extra]:
        before_it = getattr(error, name, _UNSET)
        if before_it is not value:
            if before_it is _UNSET:
                transaction.undoable(delattr, error, name)
            else:
                transaction.undoable(setattr, error, name, before_it)
            setattr(error, name, value)
    if shares_dict and error.__dict__ is not attributes:
        transaction.undoable(setattr, error, "__dict__", error.__dict__)
        error.__dict__ = attributes
    elif not shares_dict:
        error.__dict__.update(attributes)


def _link(error: BaseException, cause: Any, context: Any, suppress: bool) -> None:
    """Set cause and context before `__suppress_context__`: to set a cause is to suppress the context."""
    error.__cause__, error.__context__ = cause, context
    error.__suppress_context__ = suppress


#: What these hold besides `args` is set only when they are made.
_MADE_OF_ARGS = (OSError, UnicodeError, SyntaxError)
