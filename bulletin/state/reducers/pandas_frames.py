"""Frames, series and indexes of pandas: as pandas has it, but memory they share among themselves counts for nothing.

Since pandas 3 a write to one frame is never seen through another (copy-on-write): a frame that was only read need not
travel with the frames made from it.
"""

import copyreg
import importlib
import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .arrays import owner_of

_HOLDERS = ("_ndarray", "_codes", "_data", "_mask")


def is_family(kind: type) -> bool:
    """Tell whether a type is a frame, series or index with memory that copy-on-write guards, as since pandas 3."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not hasattr(pandas, "Index") or int(pandas.__version__.partition(".")[0]) < 3:
        return False
    return issubclass(kind, pandas.DataFrame | pandas.Series | pandas.Index)


def is_older(kind: type) -> bool:
    """Tell whether a type is a frame, series or index of a pandas before version 3."""
    pandas = sys.modules.get("pandas")
    if not hasattr(pandas, "Index") or is_family(kind):
        return False
    return issubclass(kind, pandas.DataFrame | pandas.Series | pandas.Index)  # type: ignore[union-attr]


def reduce_older_frame(_: Encoding, frame: Any) -> Reduced:
    """Reduce a frame, series or index as pandas does, with the attributes that somebody has given to it."""
    extra = own_attributes(frame)
    return with_attributes(frame.__reduce_ex__(5), extra) if extra else NotImplemented


def is_guarded(kind: type) -> bool:
    """Tell whether a type is one of pandas whose values frames may share without seeing each other's writes."""
    is_pandas = isinstance(kind.__module__, str) and kind.__module__.partition(".")[0] == "pandas"
    return is_pandas and kind.__name__ not in {"DataFrame", "Series"}


def reduce_frame(encoder: Encoding, frame: Any) -> Reduced:
    """Note the arrays inside a frame, series or index as guarded, and reduce it as pandas does."""
    manager = getattr(frame, "_mgr", None)
    held = [frame] if manager is None else [*(block.values for block in manager.blocks), *manager.axes]
    for part in held:
        for array in _arrays_of(part):
            encoder.guarded |= {id(array), id(owner_of(array))}
    extra = own_attributes(frame)
    if manager is None:
        if extra:
            return with_attributes(frame.__reduce_ex__(5), extra)
        return frame.__reduce__() if _is_of(type(frame), "Index", "RangeIndex") else NotImplemented
    made_by, args, state = frame.__reduce_ex__(5)[:3]
    if extra:
        return made_by, args, (state, extra), None, None, fill_frame_and_attributes
    if type(state) is dict and "_metadata" not in vars(frame):
        state.pop("_metadata", None)  # the class's own list, which is no part of the frame
        flags = state.get("_flags")
        if state.keys() == _OF_FRAME and type(flags) is dict and flags.keys() == _FLAGS:
            told = (state["_mgr"], state["attrs"], flags["allows_duplicate_labels"], state["_typ"])
            return made_by, args, told, None, None, fill_plain_frame
    return made_by, args, state, None, None, fill_frame


def own_attributes(frame: Any) -> dict[str, Any]:
    """Return the attributes that somebody has given to a frame, series or index, which pandas leaves out.

    What pandas gives out under a name of the class, and keeps there before version 3, is made anew.
    """
    kind = type(frame)
    listed = {*getattr(kind, "_metadata", ()), "sortorder"}  # of an index with levels
    return {
        name: held
        for name, held in vars(frame).items()
        if name[:1] != "_" and name not in listed and not (is_guarded(type(held)) and hasattr(kind, name))
    }


#: All that a frame says of itself, where its class is pandas' own.
_OF_FRAME, _FLAGS = frozenset({"_mgr", "_typ", "attrs", "_flags"}), frozenset({"allows_duplicate_labels"})


def _arrays_of(part: Any) -> list[Any]:
    """List the arrays of numpy that the values of a block, or an index, are or have.

    An index that is a range has one where somebody has asked for it: it is not to be made for this.
    """
    pandas, numpy = sys.modules["pandas"], sys.modules["numpy"]
    kind = type(part)
    if kind is numpy.ndarray:
        return [part]
    if kind is pandas.arrays.ArrowStringArray:
        return []
    inner = part._cache.get("_data") if kind is pandas.RangeIndex else getattr(part, "_data", part)
    found = (part, inner, *(getattr(inner, name, None) for name in _HOLDERS))
    return [array for array in found if isinstance(array, numpy.ndarray)]


def _is_of(kind: type, *called: str) -> bool:
    """Tell whether a type is one of pandas' own of these names, and not of a class made of it."""
    pandas = sys.modules["pandas"]
    return any(kind is getattr(pandas, name, None) for name in called) and kind not in copyreg.dispatch_table


def is_manager(kind: type) -> bool:
    """Tell whether a type is what a frame has its parts in: all that it is made of are these and its axes."""
    return (
        kind.__module__ == "pandas.core.internals.managers"
        and kind.__name__ == "BlockManager"
        and kind not in copyreg.dispatch_table
    )


def reduce_manager(_: Encoding, manager: Any) -> Reduced:
    """Reduce a manager as pandas does, but with its axes one by one: it makes a list of its own of those.

    Nor is it asked what it leaves out: that is nothing.
    """
    kind, (blocks, axes) = manager.__reduce__()
    return make_manager, (kind, blocks, *axes)


def make_manager(kind: Any, blocks: Any, *axes: Any) -> Any:
    """Make a manager of these blocks and axes."""
    return kind(blocks, list(axes))


def is_text_type(kind: type) -> bool:
    """Tell whether a type is pandas' own for types of columns of texts."""
    return kind is getattr(sys.modules.get("pandas"), "StringDtype", None)


def reduce_text_type(_: Encoding, dtype: Any) -> Reduced:
    """Reduce the type of texts with NaN for a missing one to where its texts are; leave others to pickle.

    It is in every frame since pandas 3, and a stream with a NaN in it is read opcode by opcode, to be given the NaN
    that everybody has.
    """
    if type(dtype.na_value) is not float:
        return NotImplemented
    return make_text_type, (RECEIVER, dtype.storage)


def make_text_type(transaction: LoadTransaction, storage: str) -> Any:
    """Make the type of texts that are there; return the existing one, if it is the same."""
    numpy = sys.modules.get("numpy") or importlib.import_module("numpy")
    pandas = sys.modules.get("pandas") or importlib.import_module("pandas")
    old = transaction.take_existing()
    made = pandas.StringDtype(storage, na_value=numpy.nan)
    if type(old) is type(made) and old == made:
        return old
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def is_block(kind: type) -> bool:
    """Tell whether a type is one of the parts of a frame that hold its values, which copy-on-write keeps apart."""
    return kind.__module__ == "pandas.core.internals.blocks" and hasattr(kind, "values") and _copies_on_write()


def _copies_on_write() -> bool:
    """Tell whether frames that share values do not see each other's writes: always since pandas 3, else by option."""
    pandas = sys.modules["pandas"]
    return int(pandas.__version__.partition(".")[0]) > 2 or pandas.get_option("mode.copy_on_write") is True


def reduce_block(encoder: Encoding, block: Any) -> Reduced:
    """Reduce a block as pandas does. But values that several blocks share until one is written go once for each.

    What says that they are shared does not travel, so the first write would show in the others.
    """
    made_by, args = block.__reduce_ex__(5)[:2]
    values = args[0]
    if getattr(made_by, "__name__", "") == "_unpickle_block" and len(args) == 3 and type(args[1]) is slice:
        made_by, args = make_block, (values, args[1].start, args[1].stop, args[1].step, args[2])
    if encoder.blocks.setdefault(id(values), id(block)) != id(block):
        values = values.copy()
    encoder.alive += [block, values]
    return made_by, (values, *args[1:])


def make_block(values: Any, start: Any, stop: Any, step: Any, axes: int) -> Any:
    """Make a block of these values, which are columns of a frame that lie at equal distances in it."""
    internals = importlib.import_module("pandas._libs.internals")
    return internals._unpickle_block(values, slice(start, stop, step), axes)


def fill_frame(frame: Any, state: Any) -> None:
    """Set a state as pandas does, but with the `attrs` that came: pandas would copy them, and they are the user's."""
    frame.__setstate__(state)
    if isinstance(state, dict) and "attrs" in state:
        object.__setattr__(frame, "_attrs", state["attrs"])


def fill_plain_frame(frame: Any, told: tuple[Any, Any, Any, str]) -> None:
    """Set the state of a frame that is its parts, attributes and whether labels may stand twice."""
    manager, attrs, allows, of = told
    fill_frame(frame, {"_mgr": manager, "_typ": of, "attrs": attrs, "_flags": {"allows_duplicate_labels": allows}})


def with_attributes(reduced: Any, extra: dict[str, Any]) -> Reduced:
    """Add to what pandas says of an index the attributes that somebody has given to it."""
    made_by, args, state = (*reduced, None)[:3]
    return made_by, args, (state, extra), None, None, fill_frame_and_attributes


def fill_frame_and_attributes(frame: Any, told: tuple[Any, dict[str, Any]]) -> None:
    """Set a state as pandas does, if there is one, and the attributes that somebody has given to the frame."""
    state, extra = told
    if state is not None:
        fill_frame(frame, state)
    for name, held in extra.items():
        object.__setattr__(frame, name, held)
