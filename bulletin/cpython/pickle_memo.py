"""The inside of pickle: the places of its memo, and the private names of `copyreg`."""

import copyreg
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

#: What pickle says for `cls.__new__(cls, *args)`.
new_object: Any = copyreg.__newobj__  # type: ignore[attr-defined]
#: Codes of `copyreg.add_extension` -> (module, name). With any, a global may have no place in the memo.
EXTENSIONS: Mapping[int, tuple[str, str]] = copyreg._inverted_registry  # type: ignore[attr-defined]


def ground_preamble(places: Iterable[int]) -> bytes:
    """The opcodes with which a stream begins: put what `persistent_load` gives for these into the memo, in order."""
    opcodes = b"".join(
        pickle.BININT1 + bytes([place]) + pickle.BINPERSID + pickle.MEMOIZE + pickle.POP for place in places
    )
    return pickle.PROTO + b"\x05" + opcodes


def read_memo(pickler: pickle.Pickler) -> dict[int, tuple[int, object]]:
    """A copy of what a pickler has written: id -> (place in the memo, object)."""
    found: dict[int, tuple[int, object]] = pickler.memo.copy()
    return found


def set_memo(pickler: pickle.Pickler, memo: dict[int, tuple[int, object]]) -> None:
    """Let a pickler take these as written already, in these places; it copies them."""
    pickler.memo = memo


def objects_in_order(unpickler: pickle.Unpickler) -> list[object]:
    """What an unpickler has put into its memo, by place. The C unpickler's copy of it is in that order."""
    return list(unpickler.memo.copy().values())


def module_holding(value: object, name: str) -> str:
    """The module that pickle would say holds a value under that name."""
    found: str = pickle.whichmodule(value, name)  # type: ignore[attr-defined]
    return found
