"""The inside of pickle: the places of its memo, and the private names of `copyreg`."""

import copyreg
import io
import pickle
import struct
from collections.abc import Iterable, Mapping
from typing import Any

#: What pickle says for `cls.__new__(cls, *args)`.
new_object: Any = copyreg.__newobj__  # type: ignore[attr-defined]
#: Codes of `copyreg.add_extension` -> (module, name). With any, a global may have no place in the memo.
EXTENSIONS: Mapping[int, tuple[str, str]] = copyreg._inverted_registry  # type: ignore[attr-defined]


def ground_preamble(memo_indexes: Iterable[int]) -> bytes:
    """Build the opcodes with which a stream begins.

    They put what `persistent_load` gives for each of these places into the memo, in this order.
    """
    opcodes = b"".join(
        pickle.BININT1 + bytes([memo_index]) + pickle.BINPERSID + pickle.MEMOIZE + pickle.POP
        for memo_index in memo_indexes
    )
    return pickle.PROTO + b"\x05" + opcodes


def ground_containers(numbered: Iterable[tuple[int, int]]) -> bytes:
    """Build the opcodes that do the same with what `persistent_load` gives for these pairs of numbers."""
    return b"".join(
        pickle.BININT1 + bytes([kind]) + pickle.BININT + struct.pack("<i", number)
        + pickle.TUPLE2 + pickle.BINPERSID + pickle.MEMOIZE + pickle.POP
        for kind, number in numbered
    )  # fmt: skip


def read_memo(pickler: pickle.Pickler) -> dict[int, tuple[int, object]]:
    """Copy a pickler's memo: the id of each object that it has written -> (place in the memo, object)."""
    found: dict[int, tuple[int, object]] = pickler.memo.copy()
    return found


def set_memo(pickler: pickle.Pickler, memo: dict[int, tuple[int, object]]) -> None:
    """Let a pickler take these objects as written already, in these places; it copies the mapping."""
    pickler.memo = memo


def dumps_without_memo(value: object) -> bytes:
    """Pickle a value that holds no object twice, and no container but itself: its objects get no places.

    With places, a list of texts takes ten times as long.
    """
    file = io.BytesIO()
    pickler = pickle.Pickler(file, protocol=5)
    pickler.fast = True
    pickler.dump(value)
    return file.getvalue()


def objects_in_order(unpickler: pickle.Unpickler) -> list[object]:
    """List what an unpickler has put into its memo, by place: the C unpickler's copy of it is in that order."""
    return list(unpickler.memo.copy().values())


def module_holding(value: object, name: str) -> str:
    """Return the name of the module that pickle would say holds a value under that name."""
    found: str = pickle.whichmodule(value, name)  # type: ignore[attr-defined]
    return found
