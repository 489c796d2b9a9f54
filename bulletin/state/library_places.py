"""Where a notebook may put things into libraries: the dicts of modules and of classes, and dicts that those hold.

They are asked with each cell, so only those count that the notebook reaches by its names: of modules that it has or
took something from, of the classes that these export, with their bases, and of the modules that these were written in.
"""

import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, repeat
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from bulletin.cpython.class_layout import is_immutable

from .atoms import is_atom
from .inplace import attributes_of
from .modules.sources import location_of, spec_in
from .reducers import is_in_place, places_of
from .reducers.functions import is_importable

#: What a library keeps entries in that it, or people, find by a key.
DICTS = (dict, defaultdict)


class LibraryPlace(NamedTuple):
    """An attribute of a library's module, of a class or an instance in it; or an entry of a dict that is an attribute.

    `owner` is a dotted name in the module, empty for the module itself; `key` has one key, or none.
    """

    module: str
    owner: str
    attribute: str
    key: tuple[Any, ...] = ()


def owner_of(place: LibraryPlace) -> Any:
    """Return the module, class or instance that a place is an attribute of; None where it is not here."""
    owner: Any = sys.modules.get(place.module)
    for part in place.owner.split(".") if place.owner else ():
        owner = getattr(owner, part, None)
    return owner


@dataclass(slots=True)
class LibraryDict:
    """A dict of a library: the attributes of `owner`, or that one of them which `attribute` names."""

    module: str
    owner: str
    attribute: str
    held: Any
    kind: type
    #: How many entries it had when it was looked at; below 0 before that.
    length: int = -1
    #: The key of the newest of them: where one has gone and another come, there are as many, and this is another.
    newest: Any = field(default=None, repr=False)
    #: Plain values of a module that the notebook has under a name, or of an instance for everybody, as they were last.
    atoms: dict[str, Any] | None = field(default=None, repr=False)
    #: Dicts of plain values among the options of an instance, each with what was in it last, as text.
    groups: dict[str, str] = field(default_factory=dict, repr=False)
    #: Public names lead to it, in an instance that a module has for everybody: what a cell adds there is meant to be.
    is_public: bool = False
    #: All its attributes go: something of the notebook's is among them.
    is_whole: bool = False
    #: It belongs to whoever uses the library: public names lead to it, in a module or a class.
    is_shared: bool = False
    #: It is a public dict of an instance that the notebook has under a name.
    is_named: bool = False
    #: It is a module whose variables alone were looked at.
    is_part: bool = False
    #: Keys that were there when it was looked at.
    seen: set[Any] = field(default_factory=set, repr=False)

    def place_of(self, key: Any) -> LibraryPlace:
        """Return the place of one entry."""
        if self.attribute:
            return LibraryPlace(self.module, self.owner, self.attribute, (key,))
        return LibraryPlace(self.module, self.owner, key)

    def is_as_it_was(self) -> bool:
        """Tell whether it has the entries that it had when it was looked at, for all that their number and end say."""
        return len(self.held) == self.length and newest_of([self.held])[0] is self.newest

    def take_new(self) -> list[tuple[Any, Any]]:
        """Return the entries that have come since, the newest first, and note how many there are.

        They are the last ones, unless some have gone as well: then all are returned.
        """
        held, count = self.held, len(self.held) - self.length
        is_added_to = 0 <= count < len(held) and next(islice(reversed(held), count, None)) is self.newest
        new = [(key, held[key]) for key in islice(reversed(held), count if is_added_to else None)]
        self.length, self.newest = len(held), new[0][0] if new else newest_of([held])[0]
        return new

    def accept(self, key: Any) -> None:
        """Compare a variable from now on with what it has now, if it is one of those that are compared."""
        value = self.held.get(key)
        if self.atoms is not None and key in self.atoms:
            self.atoms[key] = value


def newest_of(helds: Iterable[Any]) -> list[Any]:
    """Return the newest key of each dict, None of an empty one: of a thousand in a quarter of a millisecond."""
    return list(map(next, map(reversed, helds), repeat(None)))


class LibraryPlaces:
    """The dicts of the libraries that a notebook reaches. Those of a module are found once."""

    def __init__(self) -> None:
        self.holders: dict[int, LibraryDict] = {}
        self.of_module: dict[str, list[LibraryDict]] = {}
        #: How many times a dict was added, or is to be looked at anew.
        self.revision = 0
        #: Classes of which the notebook has had an instance under a name, by module and name.
        self.used: set[tuple[str, str]] = set()
        #: Where classes keep the one instance that they give out, of which the notebook has had one under a name.
        self.singletons: dict[LibraryPlace, None] = {}
        self._modules: dict[str, ModuleType] = {}
        #: By library, those that keep in a registry of it what was registered with them (spacy, in one of catalogue's).
        self.lent: dict[str, set[str]] = {}
        #: Types whose modules were added; and classes whose ids are in use.
        self._kinds: set[type] = set()
        self._classes: list[type] = []
        #: Modules under a name whose parts were added when so many modules were imported.
        self._whole: dict[str, ModuleType] = {}
        #: Dicts of such parts whose plain values are to be noted.
        self.parts: list[LibraryDict] = []
        self._imported = 0

    def extend(self, namespace: Mapping[str, Any]) -> None:
        """Add what this namespace has come to reach."""
        if self._imported != len(sys.modules):
            self._imported = len(sys.modules)
            self._whole.clear()
        for value in list(namespace.values()):
            kind = type(value)
            if kind in self._kinds:
                continue
            if issubclass(kind, ModuleType):
                self._add_named(vars(value).get("__name__"))
            elif issubclass(kind, FunctionType | type):
                self._add(value.__module__)
                holder = self.holders.get(id(value))
                if holder is not None and holder.atoms is None:
                    self._look_anew(holder)
            else:
                self._add(kind.__module__)
                self._kinds.add(kind)
                self.used.update((cls.__module__, cls.__qualname__) for cls in kind.__mro__[:-1])
                if is_importable(kind):
                    self.singletons |= dict.fromkeys(_places_of_single(kind, value))
                    self._add_constant(value)

    def _add_named(self, name: Any) -> None:
        """Add a module that the notebook has under a name, and its public parts, to which that name leads."""
        holder = self._add(name)
        if holder is None or self._whole.get(name) is sys.modules[name]:
            return
        self._whole[name] = sys.modules[name]
        if holder.atoms is None:
            self._look_anew(holder)
        for part, value in list(holder.held.items()):
            if part[:1] != "_" and type(value) is ModuleType and value is sys.modules.get(f"{name}.{part}"):
                self._add_part(f"{name}.{part}", vars(value))

    def _add_part(self, name: str, held: Mapping[str, Any]) -> None:
        """Add the variables of a part, and its constant dicts: what it defines has names of its own."""
        dicts = [
            (key, value)
            for key, value in list(held.items())
            if type(value) in DICTS and is_named_constant(key) and _is_shared(name, key)
        ]
        noted = [self._note(name, "", key, value, id(value), dict) for key, value in dicts]
        for holder in noted:
            holder.is_shared = True
        found = [self._note(name, "", "", held, id(held), ModuleType), *noted]
        self.parts += [holder for holder in found if holder.atoms is None]

    def accept(self, place: LibraryPlace) -> None:
        """Take what is at a place now for no change."""
        for holder in self.of_module.get(place.module, ()):
            if holder.owner == place.owner and holder.attribute == (place.attribute if place.key else ""):
                holder.accept(place.key[0] if place.key else place.attribute)

    def _look_anew(self, holder: LibraryDict) -> None:
        """Have all entries of a dict looked at, of a module's dicts too, and its plain values compared from then on."""
        inside = self.of_module[holder.module] if holder.kind is ModuleType else ()
        shared = [one for one in inside if one.is_shared and not one.owner and is_named_constant(one.attribute)]
        for found in [holder, *(one for one in shared if one.atoms is None)]:
            found.atoms, found.length = {}, -1
        self.revision += 1

    def _add(self, name: Any) -> LibraryDict | None:
        module = sys.modules.get(name) if isinstance(name, str) else None
        if module is None or not issubclass(type(module), ModuleType):
            return None
        if self._modules.get(name) is module:
            return self.holders.get(id(vars(module)))
        if name in self._modules:  # it was imported anew: what the old one has is nobody's
            old = set(map(id, self.of_module.pop(name, ())))
            self.holders = {key: holder for key, holder in self.holders.items() if id(holder) not in old}
            self.revision += 1
        self._modules[name] = module
        top = name.partition(".")[0]
        if top in _NEVER or top in sys.stdlib_module_names or location_of(name, spec_in(module)) is not None:
            return None
        for value in list(vars(module).values()):
            for home in _homes(value, top):
                if home not in self._modules and type(sys.modules.get(home)) is ModuleType:
                    self._modules[home] = sys.modules[home]
                    self._look_into(home, sys.modules[home], top)
        return self._look_into(name, module, top)

    def _look_into(self, name: str, module: ModuleType, top: str) -> LibraryDict:
        for attribute, value in list(vars(module).items()):
            if attribute[:2] != "__":
                self.add(name, "", attribute, value, top)
        holder = self._note(name, "", "", vars(module), id(vars(module)), ModuleType)
        if holder.is_part:
            holder.is_part, holder.length = False, -1
            self.revision += 1
        return holder

    def add(self, module: str, owner: str, attribute: str, value: Any, top: str) -> None:
        """Add the dicts of what a module, a class or an instance of a library holds as an attribute."""
        kind = type(value)
        if kind in DICTS:
            self._note(module, owner, attribute, value, id(value), dict).is_shared |= _is_shared(
                module, owner, attribute
            )
        elif issubclass(kind, threading.local):
            self._note(module, owner, attribute, vars(value), id(vars(value)), threading.local).atoms = {}
        elif issubclass(kind, type):
            for cls in value.__mro__:
                if _is_of(cls, top) and id(cls) not in self.holders and is_importable(cls):
                    self._classes.append(cls)
                    self._note(cls.__module__, cls.__qualname__, "", vars(cls), id(cls), type)
                    self._add_dicts(cls.__module__, cls.__qualname__, vars(cls))
                    self._add_lent(vars(cls), top)
        elif not owner and _is_of(kind, top):
            self._add_instance(module, attribute, value, top)

    def _add_lent(self, held: Mapping[str, Any], top: str) -> None:
        """Add the modules of registries of other libraries that a class has."""
        for kind in {type(value) for value in list(held.values()) if type(value).__name__.endswith("Registry")}:
            library = kind.__module__.partition(".")[0]
            if library != top and self._add(kind.__module__) is not None:
                self.lent.setdefault(library, set()).add(top)

    def lent_to(self, libraries: set[str]) -> set[str]:
        """Return the libraries in whose registries these keep what was registered with them."""
        return {library for library, users in self.lent.items() if not users.isdisjoint(libraries)}

    def dicts_of(self, libraries: set[str]) -> list[LibraryDict]:
        """List the dicts that modules and classes of these libraries have, but for those that are there for speed."""
        return [
            holder
            for module, holders in self.of_module.items()
            if module.partition(".")[0] in libraries
            for holder in holders
            if holder.kind is dict and holder.attribute and not is_kept_for_speed(holder.attribute)
        ]

    def _add_instance(self, module: str, path: str, value: Any, top: str) -> None:
        """Add what an instance holds that a module has for everybody; and likewise an instance in that one."""
        attributes = attributes_of(value)
        if attributes is None or id(attributes) in self.holders:
            return
        whole = self._note(module, path, "", attributes, id(attributes), object)
        if not any(part[:1] == "_" for part in path.split(".")):
            whole.is_public, whole.atoms = True, {}
        self._add_dicts(module, path, attributes, is_public=whole.is_public)
        for name, part in list(attributes.items()):
            if issubclass(type(part), threading.local):
                self.add(module, path, name, part, top)
            elif whole.is_public and name[:1] != "_" and "." not in path and _is_of(type(part), top):
                self._add_instance(module, f"{path}.{name}", part, top)

    def _add_constant(self, value: object) -> None:
        """Add the public dicts of an instance that a module has for everybody, and the notebook under a name.

        What is in them goes with the notebook from the first: somebody may have put it there before.
        """
        module, name = places_of(type(value)).get(id(value), ("", "_"))
        if not _is_shared(module, name) or attributes_of(value) is None or not is_in_place(value, (module, name)):
            return
        self._add_instance(module, name, value, module.partition(".")[0])
        for holder in self.of_module.get(module, ()):
            if holder.owner == name and holder.is_public and holder.kind is dict and holder.attribute:
                holder.is_named, holder.length = True, -1
                self.revision += 1

    def _add_dicts(self, module: str, owner: str, held: Mapping[str, Any], *, is_public: bool = False) -> None:
        for name, value in list(held.items()):
            if type(value) in DICTS and name[:2] != "__":
                holder = self._note(module, owner, name, value, id(value), dict)
                if is_public and name[:1] != "_" and not is_kept_for_speed(name):
                    holder.is_public, holder.atoms = True, {}
                holder.is_shared |= _is_shared(module, owner, name)

    def _note(
        self, module: str, owner: str, attribute: str, held: Mapping[Any, Any], key: int, kind: type
    ) -> LibraryDict:
        if key not in self.holders:
            self.holders[key] = LibraryDict(module, owner, attribute, held, kind)
            self.revision += 1
            self.of_module.setdefault(module, []).append(self.holders[key])
        return self.holders[key]


def _places_of_single(kind: type, value: object) -> Iterator[LibraryPlace]:
    """Find where a class of a library, or its metaclass, keeps this instance of it: under a name, or by the class.

    What Python says nobody can change (`datetime.min`) is each side's own, and so is what is as good as another.
    """
    if is_atom(value):
        return
    top = kind.__module__.partition(".")[0]
    metaclass: type = type(kind)
    for cls in (*kind.__mro__[:-1], *metaclass.__mro__):
        if not _is_of(cls, top) or not is_importable(cls) or top in _NEVER or is_immutable(cls):
            continue
        for name, held in list(vars(cls).items()):
            if held is value:
                yield LibraryPlace(cls.__module__, cls.__qualname__, name)
            elif type(held) in DICTS and held.get(kind) is value:
                yield LibraryPlace(cls.__module__, cls.__qualname__, name, (kind,))


def _is_shared(*names: str) -> bool:
    """Tell whether these names are public, and say nothing of a cache."""
    parts = [part for name in names for part in name.split(".")]
    return not any(part[:1] == "_" for part in parts) and not is_kept_for_speed(names[-1])


def is_named_constant(name: str) -> bool:
    """Tell whether a name is that of a public constant: people change those, and a library's code does not."""
    return name[:1] != "_" and name.isupper()


def is_kept_for_speed(name: str) -> bool:
    """Tell whether a name says that what it holds is found again without it."""
    return _KEPT_FOR_SPEED.search(name) is not None


_KEPT_FOR_SPEED = re.compile("cache|memo(?!r)", re.IGNORECASE)


def _homes(value: Any, top: str) -> Iterator[str]:
    """List the modules of a library that a value, or the classes that it comes from, were written in."""
    kind = type(value)
    found = value.__mro__ if issubclass(kind, type) else [value if issubclass(kind, FunctionType) else kind]
    return (one.__module__ for one in found if _is_of(one, top))


def _is_of(definition: Any, top: str) -> bool:
    home = definition.__module__
    return isinstance(home, str) and home.partition(".")[0] == top


_NEVER = frozenset(
    {"", "builtins", "__main__", "__mp_main__", "bulletin", "bulletin_lab", "bulletin_magic", "gpu_worker", "IPython"}
)


def is_of_library(value: object) -> bool:
    """Tell whether this is what travels, or travelled, of a library: no name of the notebook's leads to it."""
    return type(value) is dict and all(type(place) is LibraryPlace for place in value)
