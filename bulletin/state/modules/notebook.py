"""The notebook's side: which modules of its own it has loaded, what an executor needs of them, and what comes back."""

import importlib
import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType

from bulletin.cpython.import_system import is_being_imported
from bulletin.errors import ModulesTooLarge
from bulletin.state.modules import attributes, sources
from bulletin.state.modules.attributes import GlobalChange
from bulletin.state.modules.loaded_module import LoadedModule
from bulletin.state.modules.patches import codes_of, definitions_of, is_patched
from bulletin.state.modules.shipment import (
    Changes,
    Known,
    ModuleEntry,
    ModuleLoad,
    Shipment,
    new_id,
    unnoticed,
)
from bulletin.state.modules.sources import Search, SourceLocation

#: Of all sources that a cell needs.
MAX_SOURCES_BYTES = 20_000_000


class NotebookModules:
    """Owns what is remembered of the modules of this process. One for a process."""

    def __init__(self) -> None:
        self._loaded: dict[str, LoadedModule] = {}
        self._looked: dict[str, ModuleSpec | None] = {}  # every name in sys.modules, and what was there
        self._last = _NOTHING

    def observe(self) -> None:
        """Remember the sources of modules that were loaded or reloaded since the last call.

        To be called after each cell of the notebook: a file that is edited before then is remembered as edited. Some
        microseconds where no module was loaded.
        """
        if self._last != _extent() or not all(map(self._is_as_looked, self._loaded)):
            self._look()
        for loaded in [one for one in self._loaded.values() if one.is_patched_in_place]:
            module = loaded.module()
            if module is not None:
                self._remember(module, loaded.location)
                self._loaded[loaded.location.name].is_patched = True

    def _is_as_looked(self, name: str) -> bool:
        return sources.spec_in(sys.modules.get(name)) is self._looked.get(name)

    def _look(self) -> None:
        """Go through all modules of the process, in the order in which they were loaded."""
        self._last = _extent()
        for name in [name for name in self._looked if name not in sys.modules]:
            del self._looked[name]
            self._loaded.pop(name, None)
        for name, module in list(sys.modules.items()):
            spec = sources.spec_in(module)
            if name in self._looked and self._looked[name] is spec:
                continue
            if is_being_imported(spec):
                self._last = _NOTHING  # to be looked at again
                continue
            self._looked[name] = spec
            location = sources.location_of(name, spec)
            if location is None:
                self._loaded.pop(name, None)
            else:
                self._remember(module, location)

    def _remember(self, module: ModuleType, location: SourceLocation) -> None:
        before = self._loaded.pop(location.name, None)
        is_same = before is not None and before.module() is module
        source = None if location.file is None or location.is_compiled else sources.source_of(location.file)
        spec = sources.spec_in(module)
        assert spec is not None
        self._loaded[location.name] = LoadedModule(
            spec=spec,
            module=weakref.ref(module),
            location=location,
            source=source,
            load=ModuleLoad(before.load.module if is_same and before is not None else new_id(), new_id()),
            seen=attributes.read(module),
            is_patched=before is not None and is_patched(before.definitions, attributes.namespace(module)),
            definitions=definitions_of(module),
            codes=codes_of(module),
        )

    def out(
        self,
        imports: Iterable[str] = (),
        known: Known | None = None,
        used: Iterable[str] = (),
        reached: Collection[str] | None = None,
    ) -> tuple[Shipment, Known]:
        """Collect what an executor needs of this process's own modules.

        Those are the loaded ones, those that they, or the cell, import somewhere by name, and all of the packages that
        these are in, where a package is small. Other files beside them do not travel.

        Parameters
        ----------
        imports
            Full names of modules that the cell or a function that it reaches imports. Any may be missing or installed.
        known
            What the executor has; None for a new one.
        used
            Full names of loaded modules that the cell has values of.
        reached
            Top names of all modules that the cell gets anything of; None where it may load any. A cell that imports
            nothing and gets nothing of the user's own modules needs no look at their folders.

        Returns
        -------
        Shipment, and what the executor has once it has settled it.

        Raises
        ------
        ModulesTooLarge
            If the sources are more than `MAX_SOURCES_BYTES`.
        """
        known = known or Known()
        imports = list(imports)
        self.observe()
        if not all(map(self._is_as_looked, (*imports, *used))):  # one was put in the place of another
            self._look()
        if reached is not None and not imports and self._is_as_sent(known) and not known.has_any(reached):
            return Shipment(known.table, None, {}, (), {}), known
        entries, texts = self._entries(imports)
        if entries == known.entries:
            table, sent = known.table or new_id(), None if known.table else entries
        else:
            table, sent = new_id(), entries
        wanted = tuple(
            name for name in dict.fromkeys(sources.with_parents(imports)) if name in self._loaded or _is_inside(name)
        )
        states, changed = self._attributes(known)
        shipment = Shipment(
            table,
            sent,
            {digest: text for digest, text in texts.items() if digest not in known.digests},
            wanted,
            changed,
        )
        return shipment, Known(table, entries, known.digests | texts.keys(), states)

    def _is_as_sent(self, known: Known) -> bool:
        """Tell whether the executor has the modules as they were loaded here, and the files of those that were not."""
        sent = {name: entry.loaded for name, entry in known.entries.items() if entry.loaded is not None}
        if not known.table or sent != {name: loaded.load for name, loaded in self._loaded.items()}:
            return False
        for entry in known.entries.values():
            if entry.loaded is None and entry.file is not None and not entry.is_compiled:
                source = sources.source_of(entry.file)
                if source is None or source.digest != entry.on_file:
                    return False
        return True

    def _entries(self, imports: Iterable[str]) -> tuple[dict[str, ModuleEntry], dict[str, str]]:
        found: dict[str, ModuleEntry] = {}
        texts: dict[str, str] = {}
        sizes: dict[str, int] = {}
        for location in self._needed(imports):
            loaded = self._loaded.get(location.name)
            on_file = None if location.file is None or location.is_compiled else sources.source_of(location.file)
            source = loaded.source if loaded is not None else on_file
            on_file = on_file or source
            for text in (source, on_file):
                if text is not None:
                    texts[text.digest] = text.text
                    sizes[location.name] = max(text.size, sizes.get(location.name, 0))
            found[location.name] = ModuleEntry(
                location.file,
                location.folders,
                source and source.digest,
                on_file and on_file.digest,
                None if loaded is None else loaded.load,
                location.is_compiled,
                loaded is not None and loaded.is_patched,
            )
        if sum(sizes.values()) > MAX_SOURCES_BYTES:
            largest = max(sizes, key=sizes.__getitem__)
            raise ModulesTooLarge(sum(sizes.values()), MAX_SOURCES_BYTES, largest, sizes[largest])
        return found, texts

    def _needed(self, imports: Iterable[str]) -> Iterator[SourceLocation]:
        """Find the modules to be sent: first the loaded ones, in the order in which they were loaded.

        Then follow those that these or the cell import by name, and all modules of the packages among them that are
        small.
        """
        search = Search()
        order = sys.modules if self._loaded else ()
        locations = {name: self._loaded[name].location for name in order if name in self._loaded}
        rest = list(locations.values())
        asked: set[str] = set()  # most modules of a package import the same ones
        for name in imports:
            self._add_named(name, asked, search, locations, rest)
        while rest:
            location = rest.pop(0)
            for name in self._imports_of(location):
                self._add_named(name, asked, search, locations, rest)
            parent = locations.get(location.name.rpartition(".")[0])
            if location.folders and location.file is not None and (parent is None or parent.file is None):
                for other in sources.unnamed_in(location):
                    self._add(other, locations, rest)
        yield from locations.values()

    def _add_named(
        self,
        name: str,
        asked: set[str],
        search: Search,
        locations: dict[str, SourceLocation],
        rest: list[SourceLocation],
    ) -> None:
        """Add a module and the packages that it is in, unless it was asked for before."""
        if name not in asked:
            asked.add(name)
            for inside in sources.with_parents([name]):
                self._add(search.location(inside), locations, rest)

    def _add(
        self, location: SourceLocation | None, locations: dict[str, SourceLocation], rest: list[SourceLocation]
    ) -> None:
        if location is not None and location.name not in locations:
            locations[location.name] = location
            rest.append(location)

    def _imports_of(self, location: SourceLocation) -> tuple[str, ...]:
        if location.file is None or location.is_compiled:
            return ()
        loaded = self._loaded.get(location.name)
        source = loaded.source if loaded is not None else sources.source_of(location.file)
        package = location.name if location.folders is not None else location.name.rpartition(".")[0]
        return () if source is None else sources.imports_of(source.text, package)

    def imports_through(self, names: Iterable[str], known: Known) -> set[str]:
        """Return these full names of modules, and all that the process's own modules among them import in their turn.

        `known` has the own modules that the cell may reach: what `out` returned.
        """
        found: set[str] = set()
        rest = list(sources.with_parents(names))
        while rest:
            name = rest.pop()
            if name in found:
                continue
            found.add(name)
            entry = known.entries.get(name)
            if entry is not None:
                rest += sources.with_parents(self._imports_of(SourceLocation(name, entry.file, entry.folders)))
        return found

    def _attributes(
        self, known: Known
    ) -> tuple[dict[str, tuple[ModuleLoad, attributes.State]], dict[str, GlobalChange]]:
        """Read the globals of all loaded modules, and find what of them is new to the executor."""
        states: dict[str, tuple[ModuleLoad, attributes.State]] = {}
        changed: dict[str, GlobalChange] = {}
        for name, loaded in self._loaded.items():
            module = loaded.module()
            if module is None:
                continue
            load, state = known.attributes.get(name, (None, {}))
            before = state if load == loaded.load else loaded.base
            now = attributes.read(module, before)
            states[name] = loaded.load, now
            change = attributes.difference(before, now, module)
            if change is not None:
                changed[name] = change
        return states, changed

    def keep(self, changes: Changes) -> Callable[[], None]:
        """Return a function that takes back what `follow` is about to do.

        Modules that `follow` imports for the first time stay imported.
        """
        kept: list[tuple[str, ModuleType, dict[str, object], LoadedModule | None, ModuleLoad | None]] = []
        for name in {**changes.loaded, **changes.reloaded, **dict.fromkeys(changes.removed)}:
            module, known = sys.modules.get(name), self._loaded.get(name)
            if module is not None:
                kept.append(
                    (name, module, dict(attributes.namespace(module)), known, None if known is None else known.load)
                )

        def put_back() -> None:
            for name, module, held, known, load in kept:
                home = attributes.namespace(module)
                if home != held or list(home) != list(held):
                    home.clear()
                    home.update(held)
                sys.modules[name] = module
                parent, _, tail = name.rpartition(".")
                if parent in sys.modules:
                    attributes.namespace(sys.modules[parent])[tail] = module
                if known is not None and load is not None:
                    known.load = load
                    self._loaded[name], self._looked[name] = known, known.spec

        return put_back

    def follow(self, changes: Changes) -> dict[str, BaseException]:
        """Import and reload here what the cell has imported and reloaded there, unnoticed.

        To be called before the values are loaded, which may be of classes of these modules. What the modules' text
        prints or draws at random has happened there.

        Returns
        -------
        dict
            Modules that could not be imported here, and why. Values that refer to them cannot be loaded.
        """
        failed: dict[str, BaseException] = {}
        if not (changes.loaded or changes.reloaded or changes.removed):
            return failed
        anew = {
            name for name in changes.loaded if name in sys.modules and self._is_other(name, changes.loaded[name][0])
        }
        for name in (*changes.removed, *anew):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()  # a file may be so new that Python has not noticed it
        for name in (*changes.loaded, *changes.reloaded):
            with unnoticed():
                try:
                    if name in changes.reloaded and name in sys.modules:
                        importlib.reload(sys.modules[name])
                    else:
                        importlib.import_module(name)
                except (Exception, SystemExit) as error:  # noqa: BLE001  the module's own code may raise anything
                    failed[name] = error
        self._look()
        for name, (load, digest) in {**changes.loaded, **changes.reloaded}.items():
            loaded = self._loaded.get(name)
            if name not in failed and loaded is not None and (loaded.source and loaded.source.digest) == digest:
                loaded.load = load  # the executor has run this very text, so it need not run it again
        return failed

    def _is_other(self, name: str, load: ModuleLoad) -> bool:
        return name not in self._loaded or self._loaded[name].load.module != load.module

    def apply(self, changes: Changes, known: Known) -> Known:
        """Change globals of modules as the cell did. To be called last: it raises nothing, and nothing undoes it.

        Returns
        -------
        Known
            What the executor has now, for the next `out`.
        """
        states = dict(known.attributes)
        touched = {**changes.loaded, **changes.reloaded, **changes.attributes}
        for name in touched:
            loaded = self._loaded.get(name)
            module = None if loaded is None else loaded.module()
            if loaded is None or module is None:
                continue
            if name in changes.attributes:
                attributes.write(module, changes.attributes[name])
            states[name] = loaded.load, attributes.read(module)
        return replace(known, attributes=states)


def _extent() -> tuple[int, str, ModuleSpec | None]:
    """Return a mark that is another one after each import and each reload: looking at all modules is slow.

    Both end with the module as the last one of `sys.modules`.
    """
    name = next(reversed(sys.modules), "")
    return len(sys.modules), name, sources.spec_in(sys.modules.get(name))


_NOTHING: tuple[int, str, ModuleSpec | None] = (0, "", None)


def _is_inside(name: str) -> bool:
    """Tell whether the name is that of a loaded module inside a package.

    An import of the package alone may not load it in the executor.
    """
    return "." in name and name in sys.modules
