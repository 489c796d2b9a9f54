"""The executor's side: the notebook's own modules, imported by name from the texts that were sent."""

import contextlib
import importlib
import linecache
import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.abc import ExecutionLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from bulletin.cpython.import_system import as_import_machinery
from bulletin.state.modules import attributes, sources
from bulletin.state.modules.attributes import GlobalChange
from bulletin.state.modules.patches import definitions_of
from bulletin.state.modules.shipment import Changes, ModuleEntry, ModuleLoad, Shipment, new_id, unnoticed


@dataclass(slots=True)
class _Run:
    """A module that was run here from a text of the notebook's."""

    module: ModuleType
    load: ModuleLoad
    digest: str | None
    is_own: bool  # a cell's doing, not the notebook's
    base: attributes.State  # its globals when it had been run


@dataclass(frozen=True, slots=True)
class Before:
    """The modules before a cell. Made by `snapshot`, used by `changed_since`."""

    runs: Mapping[str, tuple[ModuleLoad, attributes.State]]


class ExecutorModules:
    """Owns the texts that were sent, and imports modules from them. One for a process."""

    def __init__(self) -> None:
        self.entries: Mapping[str, ModuleEntry] = {}
        self._table = ""
        self._tables: dict[str, Mapping[str, ModuleEntry]] = {}
        self._texts: dict[str, str] = {}
        self._runs: dict[str, _Run] = {}
        self._owed: set[str] = set()  # to be run next as the notebook has run them
        self._pending: dict[str, GlobalChange] = {}  # for modules that are not loaded here yet
        #: Functions and classes of each module from before `%autoreload` was at work, for whoever holds on to them.
        self._older: dict[str, list[dict[str, weakref.ref[FunctionType | type]]]] = {}
        self._finders = _Finder(self), _Compiled(self)

    def settle(self, shipment: Shipment) -> list[str]:
        """Make the modules of this process as the notebook's are. To be called before anything else of a cell arrives.

        A module that the notebook has reloaded is run again in its module object, in the notebook's order; one that it
        has imported anew becomes a new object. What they print is not shown, since the notebook has shown it. One that
        cannot be run here is taken out, and raises where the cell imports it.

        Returns
        -------
        list of str
            The modules that were run again.
        """
        self._install()
        self._texts.update(shipment.texts)
        if shipment.entries is not None:
            self._tables[shipment.table] = shipment.entries
        again: list[str] = []
        if shipment.table != self._table:
            again = self._adopt(self._tables[shipment.table])
            self._table = shipment.table
        for name, change in shipment.attributes.items():
            run = self._run_of(name)
            if run is not None:
                attributes.write(run.module, change)
            else:
                self._pending[name] = attributes.merged(self._pending.get(name), change)
        for name in shipment.wanted:
            if name not in sys.modules:
                with contextlib.suppress(Exception, SystemExit):  # the cell's own import will raise it
                    importlib.import_module(name)
        return again

    def _install(self) -> None:
        """Put the two finders into `sys.meta_path`, unless they are there.

        One stands before `PathFinder`, since a file here may have the same name; the other has the last word, where
        nothing is found.
        """
        first, last = self._finders
        if first not in sys.meta_path:
            indexes = [index for index, finder in enumerate(sys.meta_path) if finder is PathFinder]
            sys.meta_path.insert(indexes[0] if indexes else len(sys.meta_path), first)
            sys.meta_path.append(last)

    def _adopt(self, entries: Mapping[str, ModuleEntry]) -> list[str]:
        before, self.entries = self.entries, entries
        for name, was in before.items():
            if was.loaded is not None and (name not in entries or entries[name].loaded is None):
                self._drop(name)
            if name not in entries or entries[name].loaded != was.loaded:
                self._pending.pop(name, None)
        again = [name for name, entry in entries.items() if self._note_if_behind(name, entry)]
        for name in again:
            loaded = entries[name].loaded
            self._owed.add(name)
            if name in self._runs and loaded is not None and self._runs[name].load.module != loaded.module:
                self._drop(name)
        for name in again:
            self._run_again(name, entries[name])
        return again

    def _note_if_behind(self, name: str, entry: ModuleEntry) -> bool:
        """Tell whether what is loaded here must be run again; where its text was not run here, note that it is owed."""
        module, run = sys.modules.get(name), self._run_of(name)
        if entry.loaded is None or entry.is_compiled:
            return False
        if run is None:
            self._owed.add(name)
            self._runs.pop(name, None)
            # Loaded from a file that both sides see; what is installed here under that name stays.
            return module is not None and sources.location_of(name, sources.spec_in(module)) is not None
        return run.load != entry.loaded

    def _run_again(self, name: str, entry: ModuleEntry) -> None:
        module = sys.modules.get(name)
        if module is not None and entry.is_patched:
            older = [one for one in self._older.get(name, ()) if any(held() is not None for held in one.values())]
            self._older[name] = [*older, definitions_of(module)]
        try:
            if module is None:
                importlib.import_module(name)
            elif name in self._owed:  # not while another of these was imported
                importlib.reload(module)
                if entry.is_patched:
                    for held in self._older[name]:
                        _patch({key: old() for key, old in held.items()}, attributes.namespace(module))
        except (Exception, SystemExit):  # noqa: BLE001  the cell's own import will raise it
            self._drop(name)
            self._owed.add(name)

    def _drop(self, name: str) -> None:
        if self._run_of(name) is not None:
            sys.modules.pop(name, None)
        self._runs.pop(name, None)
        self._owed.discard(name)

    def _run_of(self, name: str) -> _Run | None:
        """Return the run that made the module of that name; None if the name means no module or another one now."""
        run = self._runs.get(name)
        return run if run is not None and sys.modules.get(name) is run.module else None

    # --- while a module is imported

    def digest_to_run(self, name: str) -> str | None:
        """Return the digest of the text that the next run of this module takes.

        That is the text that the notebook has run, if this side owes that run; else the one in the notebook's file.
        """
        entry = self.entries[name]
        return entry.digest if name in self._owed else entry.on_file

    def text(self, digest: str) -> str:
        """Return the text of that digest, which was sent."""
        return self._texts[digest]

    @contextlib.contextmanager
    def running(self, module: ModuleType) -> Iterator[None]:
        """Record the run of a module's text, which happens inside the `with`.

        A run that the notebook has made before is `unnoticed`, and then changes are applied that waited for the module.
        """
        name = module.__name__
        entry, digest, is_owed = self.entries[name], self.digest_to_run(name), name in self._owed
        with unnoticed() if is_owed else contextlib.nullcontext():
            yield
        self._owed.discard(name)
        before = self._runs.get(name)
        if is_owed and entry.loaded is not None:
            load = entry.loaded
        else:
            load = ModuleLoad(
                before.load.module if before is not None and before.module is module else new_id(), new_id()
            )
        if is_owed and name in self._pending:
            attributes.write(module, self._pending.pop(name))
        self._runs[name] = _Run(module, load, digest, not is_owed, attributes.read(module))

    # --- around a cell

    def snapshot(self) -> Before:
        """Record the runs and the globals of the modules as they are now, before a cell."""
        now = ((name, self._run_of(name)) for name in self._runs)
        return Before({name: (run.load, attributes.read(run.module, run.base)) for name, run in now if run is not None})

    def changed_since(self, before: Before) -> Changes:
        """Find what the cell did to modules of the notebook's.

        Puts the finders back into `sys.meta_path` if the cell has taken them out.
        """
        if self._table:
            self._install()  # the cell may have taken the finders out, and the next one need not bring modules
        loaded: dict[str, tuple[ModuleLoad, str | None]] = {}
        reloaded: dict[str, tuple[ModuleLoad, str | None]] = {}
        changed: dict[str, GlobalChange] = {}
        for name in filter(self._runs.__contains__, list(sys.modules) if self._runs else ()):  # as they were loaded
            run = self._run_of(name)
            if run is None:
                continue
            load, state = before.runs.get(name, (None, run.base))
            if load != run.load:
                state = run.base
                if load is not None and load.module == run.load.module:
                    reloaded[name] = run.load, run.digest
                elif run.is_own:
                    loaded[name] = run.load, run.digest
            change = attributes.difference(state, attributes.read(run.module, state), run.module)
            if change is not None:
                changed[name] = change
        removed = tuple(name for name in before.runs if name not in sys.modules)
        return Changes(loaded, reloaded, removed, changed)


class _Finder(MetaPathFinder):
    """Finds the modules that were sent."""

    def __init__(self, executor: ExecutorModules) -> None:
        self._executor = executor

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """Make the spec of a module as it is in the notebook; None for what was not sent."""
        entry = self._executor.entries.get(fullname)
        if entry is None or entry.is_compiled:
            return None
        folders = None if entry.folders is None else list(entry.folders)
        if entry.file is None:
            spec = ModuleSpec(fullname, _Namespace(self._executor), is_package=True)
            spec.submodule_search_locations = folders
            return spec
        if entry.digest is None:
            return None  # a text that could not be read
        loader = _Loader(self._executor, fullname, entry.file, is_package=folders is not None)
        return spec_from_file_location(fullname, entry.file, loader=loader, submodule_search_locations=folders)


class _Compiled(MetaPathFinder):
    """The last finder to be asked: says of a compiled module why it is not here."""

    def __init__(self, executor: ExecutorModules) -> None:
        self._executor = executor

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Raise ModuleNotFoundError for a module that is compiled in the notebook; None for all others."""
        entry = self._executor.entries.get(fullname)
        if entry is not None and entry.is_compiled:
            problem = f"No module named {fullname!r}: {entry.file} is compiled, and %%gpu sends modules as source"
            raise ModuleNotFoundError(problem, name=fullname)


class _Loader(ExecutionLoader):
    """Runs the text of one module."""

    def __init__(self, executor: ExecutorModules, name: str, path: str, *, is_package: bool) -> None:
        self.name, self.path = name, path
        self._executor = executor
        self._is_package = is_package
        self._digest = executor.entries[name].digest or ""

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002  the interface's
        """Tell whether the notebook's module is a package."""
        return self._is_package

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002  the interface's
        """Return the path of the notebook's file, which need not be on this machine."""
        return self.path

    def get_source(self, fullname: str) -> str:  # noqa: ARG002  the interface's
        """Return the text that this loader has run, or would run."""
        return self._executor.text(self._digest)

    def get_data(self, path: str) -> bytes:
        """Read a file beside the module from this machine's disk. Raises OSError where it is not there."""
        return Path(path).read_bytes()

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text, and make its lines known to tracebacks."""
        text = self.get_source(fullname)
        lines = text.splitlines(keepends=True)
        linecache.cache[self.path] = (len(text), None, lines, self.path)
        code: CodeType = compile(text, self.path, "exec", dont_inherit=True)
        return code

    @as_import_machinery
    def exec_module(self, module: ModuleType) -> None:
        """Run the text that `digest_to_run` names in the module, and record the run."""
        self._digest = self._executor.digest_to_run(self.name) or ""
        with self._executor.running(module):
            super().exec_module(module)


class _Namespace(Loader):
    """Makes a package that has no text."""

    def __init__(self, executor: ExecutorModules) -> None:
        self._executor = executor

    def exec_module(self, module: ModuleType) -> None:
        """Record the run of a package without a text, of which nothing runs; its `__file__` becomes None."""
        with self._executor.running(module):
            module.__file__ = None  # as Python's own loader leaves it


def _patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Give functions and classes from before a reload the new code, for those who hold on to them."""
    for name, was in old.items():
        has = new.get(name)
        if was is has:
            continue
        if type(was) is FunctionType and type(has) is FunctionType:
            _patch_function(was, has)
        elif isinstance(was, type) and isinstance(has, type) and was.__module__ == has.__module__:
            _patch_class(was, has)


def _patch_function(old: FunctionType, new: FunctionType) -> None:
    with contextlib.suppress(ValueError):  # another number of free variables
        old.__code__ = new.__code__
    old.__defaults__, old.__kwdefaults__, old.__doc__ = new.__defaults__, new.__kwdefaults__, new.__doc__
    old.__dict__.update(new.__dict__)


def _patch_class(old: type, new: type) -> None:
    kept = {"__dict__", "__weakref__", "__doc__", "__module__"}
    for name in vars(old).keys() - vars(new).keys() - kept:
        with contextlib.suppress(AttributeError, TypeError):
            delattr(old, name)
    for name, value in vars(new).items():
        was = vars(old).get(name)
        if type(was) is FunctionType and type(value) is FunctionType:
            _patch_function(was, value)
        elif name not in kept and was is not value:
            with contextlib.suppress(AttributeError, TypeError):
                setattr(old, name, value)
