"""Loads a stream into objects that are there already: pickle's own opcodes, each object's old twin in its place.

Pickle puts every container, instance and cell into its memo as soon as it exists and before it is filled. Here the old
object is put there instead, emptied; pickle's own opcodes then fill it, and all later references meet it. Opcodes are
those that the C pickler writes in protocol 5; `pickletools` of the standard library describes them.
"""

import builtins
import math
import pickle
import struct
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

from bulletin.cpython.pickle_memo import EXTENSIONS, new_object

from .inplace import empty, fill_dict, fill_list, fill_set, is_all_attributes, transplant
from .landing import Landing, Namespace

_U16, _I32, _U32, _U64, _F64 = (struct.Struct(form).unpack_from for form in ("<H", "<i", "<I", "<Q", ">d"))
_MEMOIZE = pickle.MEMOIZE[0]
#: Containers that `empty` knows.
_EMPTIED = (dict, list, set, deque, bytearray)
#: How an old container gets its old content back.
_FILL: dict[type, Any] = {dict: fill_dict, list: fill_list, set: fill_set}


class Decoder:
    """Loads one stream. `twins` has the old object for each place in the memo, or None."""

    def __init__(self, data: bytes, namespace: Namespace, landing: Landing, twins: Sequence[Any]) -> None:
        self._data = data
        self._landing = landing
        self._twins = twins
        self._ground = (namespace, landing, vars(builtins))
        self._memo: list[Any] = []
        self._has_more: dict[type, bool] = {}  # than `empty` takes away and puts back

    def read(self) -> tuple[Any, list[object]]:
        """The value, and the objects of the stream by their place."""
        return self._run(), self._memo

    def _twin(self, at: int) -> Any:
        """The old object for the one that is being made, if it goes into the memo at once."""
        memo = self._memo
        if self._data[at] == _MEMOIZE and len(memo) < len(self._twins):
            return self._twins[len(memo)]
        return None

    def _run(self) -> Any:
        data, landing, twins, memo = self._data, self._landing, self._twins, self._memo
        known = len(twins)
        remember, undoable = memo.append, landing.undoable
        stack: list[Any] = []
        push, pop = stack.append, stack.pop
        marks: list[list[Any]] = []
        at = 0
        nan = _nan()
        while True:
            op = data[at]
            at += 1
            if op == 0x94:  # MEMOIZE
                remember(stack[-1])
            elif op == 0x68:  # BINGET
                push(memo[data[at]])
                at += 1
            elif op == 0x6A:  # LONG_BINGET
                push(memo[_U32(data, at)[0]])
                at += 4
            elif op == 0x8C:  # SHORT_BINUNICODE
                end = at + 1 + data[at]
                push(str(data[at + 1 : end], "utf-8", "surrogatepass"))
                at = end
            elif op == 0x4B:  # BININT1
                push(data[at])
                at += 1
            elif op == 0x47:  # BINFLOAT
                value = _F64(data, at)[0]
                push(value if value == value else nan)
                at += 8
            elif op == 0x4A:  # BININT
                push(_I32(data, at)[0])
                at += 4
            elif op == 0x4D:  # BININT2
                push(_U16(data, at)[0])
                at += 2
            elif op == 0x28:  # MARK
                marks.append(stack)
                stack = []
                push, pop = stack.append, stack.pop
            elif op == 0x7D or op == 0x5D or op == 0x8F:  # EMPTY_DICT, EMPTY_LIST, EMPTY_SET
                kind: Any = dict if op == 0x7D else list if op == 0x5D else set
                place = len(memo)
                twin = twins[place] if place < known and data[at] == _MEMOIZE else None
                if twin is None:
                    push(kind())
                elif type(twin) is kind:
                    undoable(_FILL[kind], twin, twin.copy())
                    twin.clear()
                    push(twin)
                else:
                    push(transplant(landing, twin, kind(), kind, ()))
            elif op == 0x75:  # SETITEMS
                items = stack
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                target = stack[-1]
                if type(target) is dict:
                    each = iter(items)
                    target.update(zip(each, each, strict=True))
                else:
                    for index in range(0, len(items), 2):
                        target[items[index]] = items[index + 1]
            elif op == 0x73:  # SETITEM
                value = pop()
                key = pop()
                stack[-1][key] = value
            elif op == 0x65:  # APPENDS
                items = stack
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                target = stack[-1]
                if hasattr(target, "extend"):
                    target.extend(items)
                else:
                    for value in items:
                        target.append(value)
            elif op == 0x61:  # APPEND
                value = pop()
                stack[-1].append(value)
            elif op == 0x62:  # BUILD
                state = pop()
                _build(stack[-1], state)
            elif op == 0x81 or op == 0x52:  # NEWOBJ, REDUCE
                args = pop()
                made_by = stack[-1]
                twin = self._twin(at)
                if op == 0x81:
                    stack[-1] = self._new(made_by, args, {}, twin)
                else:
                    stack[-1] = made_by(*args) if twin is None else self._remake(made_by, args, twin)
            elif op == 0x4E:  # NONE
                push(None)
            elif op == 0x88 or op == 0x89:  # NEWTRUE, NEWFALSE
                push(op == 0x88)
            elif op == 0x8A or op == 0x8B:  # LONG1, LONG4
                size = data[at] if op == 0x8A else _I32(data, at)[0]
                at += 1 if op == 0x8A else 4
                push(int.from_bytes(data[at : at + size], "little", signed=True))
                at += size
            elif op == 0x85 or op == 0x86 or op == 0x87:  # TUPLE1, TUPLE2, TUPLE3
                size = op - 0x84
                parts = tuple(stack[-size:])
                del stack[-size:]
                push(_old_if_same(parts, self._twin(at)))
            elif op == 0x74:  # TUPLE
                parts = tuple(stack)
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                push(_old_if_same(parts, self._twin(at)))
            elif op == 0x29:  # EMPTY_TUPLE
                push(())
            elif op == 0x90:  # ADDITEMS
                items = stack
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                target = stack[-1]
                if isinstance(target, set):
                    target.update(items)
                else:
                    for value in items:
                        target.add(value)
            elif op == 0x91:  # FROZENSET
                whole = frozenset(stack)
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                twin = self._twin(at)
                same = type(twin) is frozenset and set(map(id, twin)) == set(map(id, whole))
                push(twin if same else whole)
            elif op == 0x93:  # STACK_GLOBAL
                name = pop()
                module = pop()
                push(find_class(module, name))
            elif op == 0x51:  # BINPERSID
                push(self._ground[pop()])
            elif op == 0x30:  # POP
                if stack:
                    pop()
                else:
                    stack = marks.pop()
                    push, pop = stack.append, stack.pop
            elif op == 0x31:  # POP_MARK
                stack = marks.pop()
                push, pop = stack.append, stack.pop
            elif op == 0x92:  # NEWOBJ_EX
                options = pop()
                args = pop()
                stack[-1] = self._new(stack[-1], args, options, self._twin(at))
            elif op == 0x95:  # FRAME
                at += 8
            elif op == 0x80:  # PROTO
                at += 1
            elif op == 0x2E:  # STOP
                return pop()
            elif op == 0x43:  # SHORT_BINBYTES
                end = at + 1 + data[at]
                push(data[at + 1 : end])
                at = end
            elif op == 0x42 or op == 0x8E:  # BINBYTES, BINBYTES8
                width = 4 if op == 0x42 else 8
                end = at + width + (_U32 if op == 0x42 else _U64)(data, at)[0]
                push(data[at + width : end])
                at = end
            elif op == 0x58 or op == 0x8D:  # BINUNICODE, BINUNICODE8
                width = 4 if op == 0x58 else 8
                end = at + width + (_U32 if op == 0x58 else _U64)(data, at)[0]
                push(str(data[at + width : end], "utf-8", "surrogatepass"))
                at = end
            elif op == 0x96:  # BYTEARRAY8
                end = at + 8 + _U64(data, at)[0]
                fresh = bytearray(data[at + 8 : end])
                at = end
                twin = self._twin(at)
                push(fresh if twin is None else transplant(landing, twin, fresh, bytearray, ()))
            elif op == 0x82 or op == 0x83 or op == 0x84:  # EXT1, EXT2, EXT4
                width = {0x82: 1, 0x83: 2, 0x84: 4}[op]
                code = int.from_bytes(data[at : at + width], "little")
                at += width
                push(find_class(*EXTENSIONS[code]))
            elif op == 0x63:  # GLOBAL
                module, name, _ = (part.decode() for part in data[at:].split(b"\n", 2))
                at += len(module.encode()) + len(name.encode()) + 2
                push(find_class(module, name))
            else:
                raise pickle.UnpicklingError(f"the opcode {op:#x} at byte {at - 1} is not one that pickle writes here")

    def _new(self, cls: Any, args: tuple[Any, ...], options: dict[str, Any], twin: Any) -> Any:
        """An instance without its state; the old one, emptied, where it is of that class or can be turned into one."""
        if twin is None:
            return cls.__new__(cls, *args, **options)
        if not args and not options and self._becomes(twin, cls):
            self._keep_state(twin)
            empty(self._landing, twin)
            return twin
        return transplant(self._landing, twin, cls.__new__(cls, *args, **options), new_object, (cls, *args))

    def _becomes(self, twin: Any, cls: Any) -> bool:
        """Whether the old object is of that class, or can be turned into one, as `twin.__class__ = cls` does it."""
        if type(twin) is not cls:
            self._landing.undoable(_set_class, twin, type(twin))
            try:
                _set_class(twin, cls)
            except TypeError:
                return False
        return True

    def _keep_state(self, twin: Any) -> None:
        """Note the state of an object that holds more than items and attributes, as `io.StringIO` does."""
        kind = type(twin)
        if kind not in self._has_more:
            self._has_more[kind] = (
                hasattr(kind, "__setstate__") and not issubclass(kind, _EMPTIED) and not is_all_attributes(kind)
            )
        if self._has_more[kind]:
            reduced = twin.__reduce_ex__(4)
            if isinstance(reduced, tuple) and len(reduced) > 2 and reduced[2] is not None:
                self._landing.undoable(twin.__setstate__, reduced[2])

    def _remake(self, made_by: Any, args: tuple[Any, ...], twin: Any) -> Any:
        """What a call makes, or the old object with what the call would give it."""
        landing = self._landing
        landing.twin = twin
        try:
            made = made_by(*args)
        finally:
            twin, landing.twin = landing.twin, None
        if twin is None:
            return made
        self._becomes(twin, type(made))
        return transplant(landing, twin, made, made_by, args)


def _set_class(value: Any, kind: Any) -> None:
    """Past what the class makes of setting attributes. Raises TypeError where the two are laid out in other ways."""
    if type(value) is not kind:
        object.__setattr__(value, "__class__", kind)


def find_class(module: str, name: str) -> Any:
    """What a module holds under a dotted name; the module is imported."""
    __import__(module)
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _nan() -> float:
    """The one that most people write."""
    numpy: Any = sys.modules.get("numpy")
    return getattr(numpy, "nan", math.nan)


def _old_if_same(parts: tuple[Any, ...], twin: Any) -> tuple[Any, ...]:
    if type(twin) is tuple and len(twin) == len(parts) and all(map(_is_equal, twin, parts)):
        return twin
    return parts


def _is_equal(old: Any, new: Any) -> bool:
    """The same object, or an equal one of a kind without identity."""
    return old is new or (type(old) is type(new) and type(old) in _ATOMS and _same_atom(old, new))


_ATOMS = frozenset({str, bytes, int, float, complex})


def _same_atom(old: Any, new: Any) -> bool:
    return bool(old == new) and (type(old) is not float or math.copysign(1, old) == math.copysign(1, new))


def _build(value: Any, state: Any) -> None:
    """What pickle does with a state."""
    setstate = getattr(value, "__setstate__", None)
    if setstate is not None:
        setstate(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        attributes = value.__dict__
        intern = sys.intern
        for key, held in state.items():
            attributes[intern(key) if type(key) is str else key] = held
    if slots:
        for key, held in slots.items():
            setattr(value, key, held)
