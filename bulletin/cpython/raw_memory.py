"""Memory by its address, through the C interface of Python: views of it, and where a view begins."""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

#: `PyBUF_WRITE`, and `PyBUF_FULL_RO`.
_WRITABLE, _FULL_READ_ONLY = 0x200, 0x11C

_view: Callable[[int, int, int], memoryview] = ctypes.pythonapi.PyMemoryView_FromMemory
_view.restype = ctypes.py_object  # type: ignore[attr-defined]
_view.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)  # type: ignore[attr-defined]


def view_of(address: int, size: int) -> memoryview:
    """Make a writable view of so many bytes at an address.

    Nothing keeps the memory alive: its owner must outlive the view.
    """
    return _view(address, size, _WRITABLE)


def addresses_in(items: tuple[Any, ...]) -> memoryview:
    """Return the memory of a tuple: the address of each item, as long as the tuple lives."""
    return view_of(id(items) + tuple.__basicsize__, len(items) * _POINTER_BYTES)


#: What a tuple holds for each item.
_POINTER_BYTES = tuple.__itemsize__


def first_field_of(value: object) -> memoryview:
    """Return the memory of a pointer that an object of C code has right behind its head, as long as the object lives.

    Of an array of numpy that is where its data begin (`PyArrayObject`, which extensions are compiled against).
    """
    return view_of(id(value) + object.__basicsize__, _POINTER_BYTES)


def held_first_by(value: object) -> Any:
    """Return the object that one of C code holds right behind its head. Only for types that are known to have one.

    The flags of an array of numpy hold the array there (`PyArrayFlagsObject`), which nothing else tells.
    """
    return ctypes.cast(int.from_bytes(first_field_of(value), sys.byteorder), ctypes.py_object).value


class _Buffer(ctypes.Structure):
    """A `Py_buffer`, of which only the first field is read. The rest is more than any version of Python needs."""

    _fields_ = (("start", ctypes.c_void_p), ("rest", ctypes.c_byte * 128))


_get_buffer: Any = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = (ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int)
_release_buffer: Any = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = (ctypes.POINTER(_Buffer),)
_release_buffer.restype = None


def address_of(view: Any) -> int:
    """Return where the memory of an object with the buffer interface begins.

    Raises BufferError where the object gives none.
    """
    buffer = _Buffer()
    _get_buffer(view, ctypes.byref(buffer), _FULL_READ_ONLY)
    start = int(buffer.start or 0)
    _release_buffer(ctypes.byref(buffer))
    return start
