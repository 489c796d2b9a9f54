"""Where a library has put down a class of the notebook: a decorator, a metaclass or a base's `__init_subclass__` did.

Such code does not run again for a class that was made on the other side, so what it put down travels with the class:
its entries in the dicts, sets and lists that modules of its bases' libraries hold, if they are plain.
"""

import sys
import weakref
from collections.abc import Iterable
from types import MethodType, ModuleType
from typing import Any, NamedTuple

from bulletin.state.atoms import ATOMS
from bulletin.state.inplace import attributes_of, is_all_attributes, slots_held
from bulletin.state.load_transaction import LoadTransaction

from .functions import is_importable
from .named import find_by_name

#: A registry of more entries is looked up by its keys alone.
_MAX_LOOKED_THROUGH = 2_000
_KINDS = (dict, set, list, weakref.WeakSet, weakref.WeakKeyDictionary, weakref.WeakValueDictionary)


class RegistryEntry(NamedTuple):
    """One entry: the module and the name of the registry; the key, and the value, of which one is the class itself."""

    module: str
    name: str
    key: Any
    value: Any


#: By library: how many modules were imported, and the registries in those of its own.
_registries: dict[str, tuple[int, list[tuple[str, str, Any]]]] = {}
#: What was found of a class, once: looking takes longer than most cells.
_found: weakref.WeakKeyDictionary[type, list[tuple[str, str, Any, Any]]] = weakref.WeakKeyDictionary()


def entries_of(cls: type) -> list[RegistryEntry]:
    """Find where the libraries of a class's bases have put it down."""
    known = _found.get(cls)
    if known is None:
        known = _found[cls] = list(_look(cls))
    found = [RegistryEntry(module, name, cls if key is _ITSELF else key, cls if value is _ITSELF else value)
             for module, name, key, value in known]  # fmt: skip
    return [*found, *_as_pytree(cls)]


#: Where jax lists the classes whose instances it takes apart; what it asks for that is in C++.
_PYTREES = ("jax._src.tree_util", "_registry")


class _MethodOfClass(NamedTuple):
    """Stands for a method of the class that is put down, which has none yet while its entries load."""

    name: str


def _as_pytree(cls: type) -> list[RegistryEntry]:
    """Return the entry that a class has with jax, in a list; none of most classes. It may come at any time."""
    module, name = _PYTREES
    listed = getattr(sys.modules.get(module), name, None)
    if not isinstance(listed, dict) or cls not in listed:
        return []
    parts = [
        _MethodOfClass(part.__name__) if isinstance(part, MethodType) and part.__self__ is cls else part
        for part in listed[cls]
    ]
    return [RegistryEntry(module, name, cls, tuple(parts))]


def _put_pytree(cls: Any, parts: Iterable[Any]) -> None:
    register: Any = find_by_name("jax.tree_util", "register_pytree_node")
    register(cls, *(getattr(cls, part.name) if isinstance(part, _MethodOfClass) else part for part in parts))


#: Stands for the class, which must not be kept by what is known of it.
_ITSELF = object()


def _look(cls: Any) -> Iterable[tuple[str, str, Any, Any]]:
    bases = (*cls.__mro__, *type(cls).__mro__)
    libraries = dict.fromkeys(base.__module__.partition(".")[0] for base in bases if isinstance(base.__module__, str))
    for library in libraries:
        if library in _NEVER or library in sys.stdlib_module_names:
            continue
        for module, name, registry in _registries_in(library):
            if isinstance(registry, dict | weakref.WeakKeyDictionary | weakref.WeakValueDictionary):
                yield from ((module, name, key, value) for key, value in _items(registry, cls))
            elif cls in registry if not isinstance(registry, list) else any(one is cls for one in registry):
                yield module, name, _ITSELF, None


_NEVER = frozenset({"builtins", "__main__", "__mp_main__", "bulletin", "gpu_worker"})


def _registries_in(library: str) -> list[tuple[str, str, Any]]:
    count, found = _registries.get(library, (0, []))
    if count != len(sys.modules):
        stem = f"{library}."
        found = [
            (name, attribute, held)
            for name, module in list(sys.modules.items())
            if (name == library or name.startswith(stem)) and isinstance(module, ModuleType)
            for attribute, held in list(vars(module).items())
            if type(held) in _KINDS and attribute[:2] != "__"
        ]
        _registries[library] = len(sys.modules), found
    return found


def _items(registry: Any, cls: type) -> list[tuple[Any, Any]]:
    if not isinstance(registry, weakref.WeakValueDictionary) and cls in registry:
        value = registry[cls]
        return [(_ITSELF, value)] if is_plain(value) else []
    if len(registry) > _MAX_LOOKED_THROUGH or isinstance(registry, weakref.WeakKeyDictionary):
        return []
    return [(key, _ITSELF) for key, value in list(registry.items()) if value is cls and type(key) in ATOMS]


def is_plain(value: Any, depth: int = 0) -> bool:
    """Tell whether a value is data through and through: atoms, in containers and in records of a library."""
    if type(value) in ATOMS:
        return True
    if depth > _MAX_DEPTH:
        return False
    if isinstance(value, tuple | frozenset | list | set) and len(value) <= _MAX_LOOKED_THROUGH:
        return all(is_plain(part, depth + 1) for part in value)
    if not is_importable(type(value)) or not is_all_attributes(type(value)):
        return False
    parts = [*(attributes_of(value) or {}).values(), *(held for _, held in slots_held(value))]
    return all(is_plain(part, depth + 1) for part in parts)


_MAX_DEPTH = 4


def put_down(transaction: LoadTransaction, entries: Iterable[RegistryEntry]) -> None:
    """Make these entries where they are missing, undoably."""
    for module, name, key, value in entries:
        registry = find_by_name(module, name)
        if (module, name) == _PYTREES:
            if isinstance(registry, dict) and key not in registry:
                _put_pytree(key, value)  # it cannot be taken back; nobody else has the class
        elif isinstance(registry, list):
            if not any(one is key for one in registry):
                transaction.undoable(_take_out, registry, key)
                registry.append(key)
        elif isinstance(registry, set | weakref.WeakSet):
            if key not in registry:
                transaction.undoable(registry.discard, key)
                registry.add(key)
        elif (
            isinstance(registry, dict | weakref.WeakKeyDictionary | weakref.WeakValueDictionary) and key not in registry
        ):
            transaction.undoable(registry.pop, key, None)
            registry[key] = value


def _take_out(registry: list[Any], key: object) -> None:
    registry[:] = [one for one in registry if one is not key]
