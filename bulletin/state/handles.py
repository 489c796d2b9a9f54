"""What stands for a value that could not travel: it keeps the value's place, and says so when it is touched."""

from typing import TYPE_CHECKING, Any, NoReturn

from bulletin.errors import StayedBehind, name_kind

if TYPE_CHECKING:
    from .load_transaction import LoadTransaction

#: What is said of a value where there is only its handle.
IN_NOTEBOOK, ON_WORKER = "stayed in the notebook", "stayed on the pool"
LOST = "was lost with the process that held it"
#: Of a result that failed to load.
NOT_KEPT = "was lost when its cell ended, as it has no name"
#: IPython asks every value for these before it shows it.
_ASKED_BY_FRONT_ENDS = ("_repr_", "_ipython_", "_mime_")


class Handle:
    """A value of the other side. Everything but its name, its type's name and its identity is refused."""

    __slots__ = ("__weakref__", "_kind", "_path", "_where")

    def __init__(self, kind: str, path: str, where: str) -> None:
        set_own = object.__setattr__
        set_own(self, "_kind", kind)
        set_own(self, "_path", path)
        set_own(self, "_where", where)

    @staticmethod
    def make(transaction: "LoadTransaction", kind: str, path: str, is_back: bool) -> Any:
        """Return what this side has in that place: the value itself, on the side that has it. Else make a handle.

        `is_back` says that it was a handle on the side that sent it: where there is nothing here, the value is lost.
        """
        own = transaction.take_existing()
        return own if own is not None else Handle(kind, path, LOST if is_back else transaction.absence)

    def __repr__(self) -> str:
        kind, path, where = parts(self)
        return f"<{path} is {name_kind(kind)} and {where}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(_ASKED_BY_FRONT_ENDS):
            raise AttributeError(name)
        raise StayedBehind(*_fields(self))


def parts(handle: Handle) -> tuple[str, str, str]:
    """Return the type of the value, its path, and what became of it, past the handle's `__getattr__`."""
    own = object.__getattribute__
    return own(handle, "_kind"), own(handle, "_path"), own(handle, "_where")


def _refuse(handle: Handle, *_: object, **__: object) -> NoReturn:
    raise StayedBehind(*_fields(handle))


def _fields(handle: Handle) -> tuple[str, str, str]:
    kind, path, where = parts(handle)
    return path, kind, where


#: Python looks these up on the class. Comparing by identity, hashing and printing go on as for any object.
_OPERATIONS = """
    setattr delattr call iter next len bool contains getitem setitem delitem enter exit aenter aexit await aiter anext
    add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and
    or xor rand ror rxor lshift rshift neg pos abs invert int float complex index round lt le gt ge
    array
"""
for _name in _OPERATIONS.split():
    setattr(Handle, f"__{_name}__", _refuse)


def reduce_handle(_: Any, handle: Handle) -> Any:
    """Write a handle as its type and path; the other side puts its own object there if it still has it."""
    from .load_transaction import RECEIVER

    kind, path, _where = parts(handle)
    return Handle.make, (RECEIVER, kind, path, True)
