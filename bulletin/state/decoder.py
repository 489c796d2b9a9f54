"""Loads a stream into objects that are there already: pickle's own opcodes, each old object in the place of the new.

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
from collections.abc import Callable, Sequence
from typing import Any

from bulletin.cpython.pickle_memo import EXTENSIONS, new_object
from bulletin.cpython.refcounts import is_held_elsewhere

from . import half_read, opcodes
from .atoms import REPEATED_ATOMS, usual_nan
from .filling import Filling, add_items, build, set_items
from .inplace import (
    empty,
    fill_dict,
    fill_list,
    fill_set,
    is_all_attributes,
    is_made_blank,
    put_in_place,
    set_class,
    transplant,
)
from .load_transaction import LoadTransaction, Namespace
from .opcodes import (
    ADDITEMS,
    BINBYTES,
    BINBYTES8,
    BINPERSID,
    BINUNICODE,
    BINUNICODE8,
    BYTEARRAY8,
    EMPTY_TUPLE,
    EXT1,
    EXT2,
    EXT4,
    FRAME,
    FROZENSET,
    GLOBAL,
    NEWOBJ_EX,
    POP,
    POP_MARK,
    PROTO,
    SHORT_BINBYTES,
    STACK_GLOBAL,
    STOP,
    TUPLE,
)

_U16, _I32, _U32, _U64, _F64 = (struct.Struct(form).unpack_from for form in ("<H", "<i", "<I", "<Q", ">d"))
#: Containers that `empty` knows.
_EMPTIED = (dict, list, set, deque, bytearray)
#: How an old container gets its old content back.
_FILL: dict[type, Any] = {dict: fill_dict, list: fill_list, set: fill_set}


class Decoder:
    """Loads one stream. `existing` has the old object for each place in the memo, or None."""

    def __init__(
        self, data: bytes, namespace: Namespace, transaction: LoadTransaction, existing: Sequence[Any]
    ) -> None:
        self._data = data
        self._transaction = transaction
        self._existing = existing
        self._ground = (namespace, transaction, vars(builtins))
        self._memo: list[Any] = []
        self._has_more: dict[type, bool] = {}  # than `empty` takes away and puts back

    def read(self) -> tuple[Any, list[object]]:
        """Load the stream; return its value, and its objects by their place in the memo."""
        self._transaction.half_read.clear()
        value = self._run()
        half_read.finish(self._transaction)
        return value, self._memo

    def _existing_at(self, at: int) -> Any:
        """Return the old object for the one being made, if the next opcode puts that into the memo; else None."""
        memo = self._memo
        if self._data[at] == opcodes.MEMOIZE and len(memo) < len(self._existing):
            return self._existing[len(memo)]
        return None

    def _run(self) -> Any:
        # As local names: every opcode of a stream is compared with these, and a look-up of a global shows.
        MEMOIZE, BINGET, LONG_BINGET = opcodes.MEMOIZE, opcodes.BINGET, opcodes.LONG_BINGET
        SHORT_BINUNICODE, BININT1 = opcodes.SHORT_BINUNICODE, opcodes.BININT1
        BINFLOAT, BININT, BININT2, MARK = opcodes.BINFLOAT, opcodes.BININT, opcodes.BININT2, opcodes.MARK
        EMPTY_DICT, EMPTY_LIST, EMPTY_SET = opcodes.EMPTY_DICT, opcodes.EMPTY_LIST, opcodes.EMPTY_SET
        SETITEMS, SETITEM, APPENDS, APPEND = opcodes.SETITEMS, opcodes.SETITEM, opcodes.APPENDS, opcodes.APPEND
        BUILD, NEWOBJ, REDUCE, NONE = opcodes.BUILD, opcodes.NEWOBJ, opcodes.REDUCE, opcodes.NONE
        NEWTRUE, NEWFALSE, LONG1, LONG4 = opcodes.NEWTRUE, opcodes.NEWFALSE, opcodes.LONG1, opcodes.LONG4
        TUPLE1, TUPLE2, TUPLE3 = opcodes.TUPLE1, opcodes.TUPLE2, opcodes.TUPLE3
        data, transaction, existing, memo = self._data, self._transaction, self._existing, self._memo
        known = len(existing)
        remember, undoable = memo.append, transaction.undoable
        filling = Filling()
        stack: list[Any] = []
        push, pop = stack.append, stack.pop
        marks: list[list[Any]] = []
        at = 0
        while True:
            op = data[at]
            at += 1
            if op == MEMOIZE:
                remember(stack[-1])
            elif op == BINGET:
                push(memo[data[at]])
                at += 1
            elif op == LONG_BINGET:
                push(memo[_U32(data, at)[0]])
                at += 4
            elif op == SHORT_BINUNICODE:
                end = at + 1 + data[at]
                push(str(data[at + 1 : end], "utf-8", "surrogatepass"))
                at = end
            elif op == BININT1:
                push(data[at])
                at += 1
            elif op == BINFLOAT:
                value = _F64(data, at)[0]
                push(value if value == value else usual_nan())
                at += 8
            elif op == BININT:
                push(_I32(data, at)[0])
                at += 4
            elif op == BININT2:
                push(_U16(data, at)[0])
                at += 2
            elif op == MARK:
                marks.append(stack)
                stack = []
                push, pop = stack.append, stack.pop
            elif op == EMPTY_DICT or op == EMPTY_LIST or op == EMPTY_SET:
                kind: Any = dict if op == EMPTY_DICT else list if op == EMPTY_LIST else set
                memo_index = len(memo)
                old = existing[memo_index] if memo_index < known and data[at] == MEMOIZE else None
                if old is None:
                    push(kind())
                    if op == EMPTY_SET:
                        filling.note_set(stack[-1], set())
                elif type(old) is kind:
                    before = old.copy()
                    undoable(_FILL[kind], old, before)
                    if op == EMPTY_SET:
                        filling.note_set(old, before)
                    old.clear()
                    push(old)
                else:
                    push(transplant(transaction, old, kind(), kind, ()))
            elif op == SETITEMS:
                items = stack
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                filling.do(set_items, stack[-1], items)
            elif op == SETITEM:
                item = [pop(), pop()]
                filling.do(set_items, stack[-1], item[::-1])
            elif op == APPENDS:
                items = stack
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                target = stack[-1]
                if hasattr(target, "extend"):
                    target.extend(items)
                else:
                    for value in items:
                        target.append(value)
            elif op == APPEND:
                value = pop()
                stack[-1].append(value)
            elif op == BUILD:
                state = pop()
                filling.do(build, stack[-1], state, self._ground[0])
            elif op == NEWOBJ or op == REDUCE:
                args = pop()
                made_by = stack[-1]
                old = self._existing_at(at)
                if op == REDUCE and data[at] == POP:  # what it returns is not wanted: it gives an object its state
                    filling.do(made_by, *args)
                    continue
                filling.require_whole(*args)
                if op == NEWOBJ:
                    stack[-1] = self._new(made_by, args, {}, old)
                else:
                    stack[-1] = made_by(*args) if old is None else self._remake(made_by, args, old)
            elif op == NONE:
                push(None)
            elif op == NEWTRUE or op == NEWFALSE:
                push(op == NEWTRUE)
            elif op == LONG1 or op == LONG4:
                size = data[at] if op == LONG1 else _I32(data, at)[0]
                at += 1 if op == LONG1 else 4
                push(int.from_bytes(data[at : at + size], "little", signed=True))
                at += size
            elif op == TUPLE1 or op == TUPLE2 or op == TUPLE3:
                size = op - TUPLE1 + 1
                parts = tuple(stack[-size:])
                del stack[-size:]
                push(_old_if_same(parts, self._existing_at(at)))
            elif op == TUPLE:
                parts = tuple(stack)
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                push(_old_if_same(parts, self._existing_at(at)))
            elif op == EMPTY_TUPLE:
                push(())
            elif op == ADDITEMS:
                items = stack
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                filling.do(add_items, stack[-1], items)
            elif op == FROZENSET:
                whole = frozenset(stack)
                stack = marks.pop()
                push, pop = stack.append, stack.pop
                old = self._existing_at(at)
                same = type(old) is frozenset and set(map(id, old)) == set(map(id, whole))
                push(old if same else whole)
            elif op == STACK_GLOBAL:
                name = pop()
                module = pop()
                push(find_class(module, name))
            elif op == BINPERSID:
                pid = pop()
                is_ground = type(pid) is int
                push(self._ground[pid] if is_ground else transaction.container(pid, self._existing_at(at)))
            elif op == POP:
                if stack:
                    pop()
                else:
                    stack = marks.pop()
                    push, pop = stack.append, stack.pop
            elif op == POP_MARK:
                stack = marks.pop()
                push, pop = stack.append, stack.pop
            elif op == NEWOBJ_EX:
                options = pop()
                args = pop()
                filling.require_whole(*args, *options.values())
                stack[-1] = self._new(stack[-1], args, options, self._existing_at(at))
            elif op == FRAME:
                at += 8
            elif op == PROTO:
                at += 1
            elif op == STOP:
                filling.finish()
                return pop()
            elif op == SHORT_BINBYTES:
                end = at + 1 + data[at]
                push(data[at + 1 : end])
                at = end
            elif op == BINBYTES or op == BINBYTES8:
                width = 4 if op == BINBYTES else 8
                end = at + width + (_U32 if op == BINBYTES else _U64)(data, at)[0]
                push(data[at + width : end])
                at = end
            elif op == BINUNICODE or op == BINUNICODE8:
                width = 4 if op == BINUNICODE else 8
                end = at + width + (_U32 if op == BINUNICODE else _U64)(data, at)[0]
                push(str(data[at + width : end], "utf-8", "surrogatepass"))
                at = end
            elif op == BYTEARRAY8:
                end = at + 8 + _U64(data, at)[0]
                fresh = bytearray(data[at + 8 : end])
                at = end
                old = self._existing_at(at)
                push(fresh if old is None else transplant(transaction, old, fresh, bytearray, ()))
            elif op == EXT1 or op == EXT2 or op == EXT4:
                width = {EXT1: 1, EXT2: 2, EXT4: 4}[op]
                code = int.from_bytes(data[at : at + width], "little")
                at += width
                push(find_class(*EXTENSIONS[code]))
            elif op == GLOBAL:
                module, name, _ = (part.decode() for part in data[at:].split(b"\n", 2))
                at += len(module.encode()) + len(name.encode()) + 2
                push(find_class(module, name))
            else:
                raise pickle.UnpicklingError(f"the opcode {op:#x} at byte {at - 1} is not one that pickle writes here")

    def _new(self, cls: Any, args: tuple[Any, ...], options: dict[str, Any], old: Any) -> Any:
        """Make an instance without its state: the old one, emptied, if it is of the class or can be turned into one."""
        if old is None:
            return cls.__new__(cls, *args, **options)
        if not args and not options and is_made_blank(cls) and self._becomes(old, cls):
            self._keep_state(old)
            empty(self._transaction, old)
            return old
        made = cls.__new__(cls, *args, **options)
        if made is not old and is_held_elsewhere(made) and _is_kept(made, lambda: cls.__new__(cls, *args, **options)):
            return put_in_place(self._transaction, old, made)
        return transplant(self._transaction, old, made, new_object, (cls, *args))

    def _becomes(self, old: Any, cls: Any) -> bool:
        """Give the old object that class, as `old.__class__ = cls` does it; return whether it could be done."""
        if type(old) is not cls:
            self._transaction.undoable(set_class, old, type(old))
            try:
                set_class(old, cls)
            except TypeError:
                return False
        return True

    def _keep_state(self, old: Any) -> None:
        """Note the state of an object that holds more than items and attributes, as `io.StringIO` does."""
        kind = type(old)
        if kind not in self._has_more:
            self._has_more[kind] = (
                hasattr(kind, "__setstate__") and not issubclass(kind, _EMPTIED) and not is_all_attributes(kind)
            )
        if self._has_more[kind]:
            reduced = old.__reduce_ex__(4)
            if isinstance(reduced, tuple) and len(reduced) > 2 and reduced[2] is not None:
                self._transaction.undoable(old.__setstate__, reduced[2])

    def _remake(self, made_by: Any, args: tuple[Any, ...], old: Any) -> Any:
        """Call `made_by`, and return what it made, or the old object with the content of what was made."""
        transaction = self._transaction
        transaction.existing = old
        try:
            made = made_by(*args)
        finally:
            old, transaction.existing = transaction.existing, None
        if old is None or old is made:
            return made
        if is_held_elsewhere(made) and _is_kept(made, lambda: made_by(*args)):
            return put_in_place(transaction, old, made)
        self._becomes(old, type(made))
        return transplant(transaction, old, made, made_by, args)


def find_class(module: str, name: str) -> Any:
    """Import a module, and return what it holds under a dotted name."""
    __import__(module)
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _is_kept(made: Any, make: Callable[[], Any]) -> bool:
    """Tell whether a value that was just made is one that its library keeps for all: a singleton, or an interned one.

    Whoever makes it again gets the same.
    """
    return type(made) not in REPEATED_ATOMS and make() is made


def _old_if_same(parts: tuple[Any, ...], old: Any) -> tuple[Any, ...]:
    if type(old) is tuple and len(old) == len(parts) and all(map(_is_equal, old, parts)):
        return old
    return parts


def _is_equal(old: Any, new: Any) -> bool:
    """Tell whether the two are one object, or equal and of a type without identity."""
    return old is new or (type(old) is type(new) and type(old) in REPEATED_ATOMS and _same_atom(old, new))


def _same_atom(old: Any, new: Any) -> bool:
    return bool(old == new) and (type(old) is not float or math.copysign(1, old) == math.copysign(1, new))
