"""Walks through a small value of well-known kinds, and finds what a witness of it is to look at."""

import sys
from operator import attrgetter
from types import FunctionType
from typing import Any

from .atoms import ATOMS
from .definition_ids import uid_of
from .encoding import Encoding
from .reducers import pandas_frames
from .reducers.arrays import address_of, owner_of
from .reducers.functions import is_importable
from .table import Unit
from .witness import Inquiry, Look, Notes, Parts, Seen, Witness, in_dicts, in_instances, in_lists, look
from .witnessed_memory import MemoryFound, all_claimed, is_plain_array, witnessed

#: A witness holds on to atoms, which are in no table: no text of more than this.
_LONGEST_ATOM = 1 << 12
#: Of a value of more, each part would be held twice.
_MOST_PARTS = 200_000
_ATOMS = frozenset(ATOMS)
_TUPLES, _LISTS = (tuple, frozenset), (list, set)


def _texts(texts: Any) -> tuple[Any, ...]:
    own = vars(texts)
    return (len(own), own["_pa_array"], own["_dtype"])


_FUNCTION = Inquiry(attrgetter(
    "__code__", "__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__",
    "__annotations__", "__dict__", "__closure__",
))  # fmt: skip
_CELL = Inquiry(lambda cell: (cell.cell_contents,))
_FRAME = Inquiry(attrgetter("_mgr", "_attrs", "_flags", "_metadata"))
_SERIES = Inquiry(attrgetter("_mgr", "_attrs", "_flags", "_metadata", "_name"))
_MANAGER, _BLOCK = Inquiry(attrgetter("blocks", "axes")), Inquiry(attrgetter("values", "mgr_locs", "ndim"))
_FLAGS = Inquiry(lambda flags: (flags._allows_duplicate_labels,))
_INDEX, _RANGE = Inquiry(attrgetter("_data", "_name")), Inquiry(attrgetter("_range", "_name"))
_TEXT_TYPE, _ARRAY = Inquiry(attrgetter("storage", "na_value")), Inquiry(attrgetter("dtype", "base"))
_TEXTS = Inquiry(_texts)
_ATTRIBUTES = Inquiry(lambda value: tuple(pandas_frames.own_attributes(value)))


class Walk:
    """Goes through one value before it is encoded; what changes meanwhile is then seen the next time."""

    def __init__(self, encoder: Encoding, root: Any) -> None:
        self._encoder, self._waiting = encoder, [root]
        self._seen: set[int] = set()
        self._dicts: list[dict[Any, Any]] = []
        self._lists: list[Any] = []
        self._instances: list[Any] = []
        self._others: list[tuple[Inquiry, Any]] = []
        self._kinds: set[type] = set()
        self._memory = MemoryFound([], [], {}, set(), [])
        self._function = root if type(root) is FunctionType else None
        self._referred: dict[int, FunctionType] = {}  # other functions, by id: their content is no part of the value
        self._parts: Parts = {}
        self._seen_in: Seen | None = None
        try:
            if self._go_through():
                self._parts = self._parts_found()
                self._seen_in = look(self._parts)
        except (AttributeError, ValueError):  # another version of pandas; an empty cell of a closure
            self._seen_in = None

    @property
    def has_failed(self) -> bool:
        """Tell whether the value is of kinds, or so large, that no witness of it can be made."""
        return self._seen_in is None

    def claim_as_read(self) -> Notes:
        """Have the encoder know of the value's memory as if it had been written, and return what it would note.

        That is for a value that has just come, on the side that is asked for it: names, modules and texts of functions
        are noted by who sends them.
        """
        encoder, memory = self._encoder, self._memory
        for array in memory.arrays:
            if id(array) in memory.framed:
                encoder.guarded |= {id(array), id(owner_of(array))}
                if array.nbytes:
                    encoder.finder.find_or_add_guarded(array, array, address_of(array), array.nbytes)
        for values, block in memory.blocks.items():
            encoder.blocks.setdefault(values, block)
        own = [*self._referred.values(), *(kind for kind in self._kinds if not encoder.by_name[kind])]
        definitions = {uid_of(definition): definition for definition in own}
        nothing: frozenset[str] = frozenset()
        return Notes(definitions, (), False, (), (), nothing, nothing, (), frozenset(self._kinds))

    def witness(self, unit: Unit, notes: Notes) -> Witness | None:
        """Make the witness of the unit that has been encoded since; None where it cannot be known again."""
        if self._seen_in is None or unit.leaves or not self._is_noted(notes):
            return None
        memory = None
        if self._memory.arrays or self._memory.buffers or self._memory.blocks or unit.regions:
            memory = witnessed(self._encoder, self._memory, unit.regions)
            if memory is None or not all_claimed(self._encoder, self._memory.blocks.items()):
                return None
        made = Witness(self._parts, self._seen_in, frozenset(self._kinds), memory, notes, self._encoder.by_name)
        return made if made.is_still_so() else None  # or it has changed while it was encoded

    def _parts_found(self) -> Parts:
        usual = ((in_dicts, self._dicts), (in_lists, self._lists), (in_instances, self._instances))
        found: dict[Look, list[Any]] = {ask: objects for ask, objects in usual if objects}
        for asked, other in self._others:
            found.setdefault(asked, []).append(other)
        return {ask: tuple(objects) for ask, objects in found.items()}

    def _is_noted(self, notes: Notes) -> bool:
        """Tell whether what was noted depends on nothing but the value: definitions are what was met in it.

        A function is its own, and what names it looks up is in its code, which does not change.
        """
        if self._function is None and (notes.names or notes.is_dynamic):
            return False
        return all(
            id(definition) in self._referred if type(definition) is FunctionType else definition in self._kinds
            for definition in notes.definitions.values()
        )

    def _go_through(self) -> bool:
        """Take in all that the value is made of; return False where a part is of no kind that is known here."""
        count = 0
        while self._waiting:
            value = self._waiting.pop()
            kind = type(value)
            if kind in _ATOMS:
                if (kind is str or kind is bytes) and len(value) > _LONGEST_ATOM:
                    return False
                continue
            if id(value) in self._seen:
                continue
            self._seen.add(id(value))
            if kind in _TUPLES:
                self._waiting += value
                count += len(value)
            elif kind is dict:
                if value is self._encoder.namespace:
                    return False
                self._add_dict(value)
                count += 2 * len(value)
            elif kind in _LISTS:
                self._lists.append(value)
                self._waiting += value
                count += len(value)
            elif kind is FunctionType:
                if not self._add_function(value):
                    return False
            elif not self._add_instance(kind, value):
                return False
            if count + len(self._others) > _MOST_PARTS or len(self._waiting) > _MOST_PARTS:
                return False
        return True

    def _add_dict(self, value: dict[Any, Any]) -> None:
        self._dicts.append(value)
        self._waiting += value
        self._waiting += value.values()

    def _add(self, ask: Inquiry, value: Any) -> None:
        """Look at what this gives of a value, and at all of that in its turn."""
        self._others.append((ask, value))
        self._waiting += ask.one(value)

    def _add_function(self, function: FunctionType) -> bool:
        self._referred[id(function)] = function
        if function is not self._function:
            return not is_importable(function)  # then its id is in the stream, and nothing else of it
        if function.__globals__ is not self._encoder.namespace:
            return False
        _, *slots, cells = _FUNCTION.one(function)
        self._others.append((_FUNCTION, function))
        self._waiting += slots
        for cell in cells or ():
            self._add(_CELL, cell)
        return True

    def _add_instance(self, kind: type, value: Any) -> bool:
        """Add an instance of a class of Python's, or what of numpy and pandas is known here."""
        if self._encoder.goes_plainly(kind):
            self._kinds.add(kind)
            self._instances.append(value)
            own = value.__dict__
            self._waiting += own
            self._waiting += own.values()
            return True
        if kind.__module__ == "numpy":
            return self._add_array(value)
        return isinstance(kind.__module__, str) and kind.__module__.startswith("pandas") and self._add_of_pandas(value)

    def _add_array(self, value: Any) -> bool:
        if type(value) is not sys.modules["numpy"].ndarray or not is_plain_array(value):
            return False
        self._memory.arrays.append(value)
        self._others.append((_ARRAY, value))
        return True

    def _add_of_pandas(self, value: Any) -> bool:
        pandas: Any = sys.modules.get("pandas")
        kind = type(value)
        if pandas is None or not pandas_frames.is_family(pandas.DataFrame):
            return False  # before pandas 3 frames do see each other's writes
        if kind is pandas.DataFrame or kind is pandas.Series:
            return self._add_frame(value, _SERIES if kind is pandas.Series else _FRAME)
        if kind is pandas.Index or kind is pandas.RangeIndex:
            return self._add_index(value, _RANGE if kind is pandas.RangeIndex else _INDEX)
        if kind is pandas.arrays.ArrowStringArray:
            return self._add_texts(value)
        if kind is pandas.StringDtype:
            self._others.append((_TEXT_TYPE, value))
            return True
        return False

    def _add_frame(self, frame: Any, ask: Inquiry) -> bool:
        kind, stock = type(frame), [] if ask is _FRAME else ["_name"]
        if list(kind._metadata) != stock or "_metadata" in vars(frame):
            return False
        if not self._add_attributes(frame):
            return False
        manager, attrs, flags, metadata, *named = ask.one(frame)
        self._others += [(ask, frame), (_MANAGER, manager), (_FLAGS, flags)]
        self._waiting += [attrs, metadata, *named, manager.axes]
        for block in manager.blocks:
            if not pandas_frames.is_block(type(block)):
                return False
            self._others.append((_BLOCK, block))
            if ask is _FRAME:  # the manager of a series writes its values without their block
                self._memory.blocks[id(block.values)] = id(block)
            self._memory.framed.add(id(block.values))
            self._waiting.append(block.values)
        return True

    def _add_attributes(self, value: Any) -> bool:
        """Look at what attributes somebody gives to a frame or an index; return False where it has some already."""
        self._others.append((_ATTRIBUTES, value))
        return not pandas_frames.own_attributes(value)

    def _add_index(self, index: Any, ask: Inquiry) -> bool:
        if not self._add_attributes(index):
            return False
        inner, name = ask.one(index)
        self._others.append((ask, index))
        self._waiting.append(name)
        if ask is _RANGE:
            self._memory.ranges.append(index)
        else:
            self._memory.framed.add(id(inner))
            self._waiting.append(inner)
        return True

    def _add_texts(self, texts: Any) -> bool:
        """Add pandas' array of texts of pyarrow, whose memory never moves. Its cache does not travel."""
        own = dict(vars(texts))
        found = own.pop("_pa_array", None)
        own.pop("_cache", None)
        if type(found).__name__ != "ChunkedArray" or not own.keys() <= {"_dtype"}:
            return False
        if found.get_total_buffer_size() > _LONGEST_ATOM << 4:
            return False
        self._others.append((_TEXTS, texts))
        self._waiting += own.values()
        for chunk in found.chunks:
            if chunk.type.num_fields:
                return False
            buffers = [buffer for buffer in chunk.buffers() if buffer is not None and buffer.size]
            self._memory.buffers.extend((buffer.address, buffer.size) for buffer in buffers)
        return True
