"""Functions and classes of the notebook, known on both sides by one id, to stay themselves on their way."""

import os
import weakref

_ids: dict[int, tuple[str, weakref.ref[object]]] = {}
_objects: dict[str, weakref.ref[object]] = {}


def uid_of(definition: object) -> str:
    """Return the id of a function or class. The first call for one draws its id at random, and registers it."""
    known = _ids.get(id(definition))
    if known is not None and known[1]() is definition:
        return known[0]
    uid = os.urandom(12).hex()
    track(uid, definition)
    return uid


def find(uid: str) -> object | None:
    """Return the function or class of that id on this side, while it lives; else None."""
    known = _objects.get(uid)
    return None if known is None else known()


def track(uid: str, definition: object) -> None:
    """Register `definition` as what `uid` means on this side, without keeping it alive."""
    key = id(definition)

    def forget(gone: weakref.ref[object]) -> None:
        if key in _ids and _ids[key][1] is gone:
            del _ids[key]
        if _objects.get(uid) is gone:
            del _objects[uid]

    reference = weakref.ref(definition, forget)
    _ids[key] = (uid, reference)
    _objects[uid] = reference


def untrack(definition: object) -> None:
    """Forget the id of a definition that is not to be found by it any more."""
    known = _ids.pop(id(definition), None)
    if known is not None:
        _objects.pop(known[0], None)


def forget() -> None:
    """Forget all ids: the other side begins anew."""
    _ids.clear()
    _objects.clear()
