"""Which modules are a user's own, where they are, and their text: found out without importing or running anything."""

import ast
import hashlib
import importlib.util
import os
import pkgutil
import site
import sys
import sysconfig
import time
import warnings
import zipimport
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bulletin.state import lookups

#: Packages of which nothing travels: Bulletin's own, wherever they are installed, and what each side has of its own.
ON_EACH_SIDE = frozenset(
    {"bulletin", "bulletin_lab", "bulletin_magic", "bulletin_spawner", "gpu_worker", "__main__", "__mp_main__"}
)
_COMPILED = (*EXTENSION_SUFFIXES, *BYTECODE_SUFFIXES)
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_LOADERS: tuple[tuple[Any, list[str]], ...] = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)
#: A file that was written so shortly before it was read may be written again within the same tick of the clock.
_TICK_NS = 2_000_000_000
#: Modules of a package that nobody names are looked for as long as there are no more, of no more bytes in all.
_MAX_UNNAMED, _MAX_UNNAMED_BYTES = 300, 2 * 2**20
#: A text in a text in a text of a cell.
_MAX_TEXTS = 3
#: What finds modules in a folder or an archive.
_Finder = FileFinder | zipimport.zipimporter


class SourceLocation(NamedTuple):
    """Where a module is: its file, or for a package without `__init__.py` none; and a package's folders."""

    name: str
    file: str | None
    folders: tuple[str, ...] | None

    @property
    def is_compiled(self) -> bool:
        """Tell whether the file is an extension module or bytecode, so that there is no source to send."""
        return self.file is not None and self.file.endswith(_COMPILED)


class Source(NamedTuple):
    """A text, its size in bytes, and a digest that names it."""

    text: str
    size: int
    digest: str


_read: dict[str, tuple[tuple[int, int, int], int, Source]] = {}


def source_of(file: str) -> Source | None:
    """Read the text of a file, or of a file in an archive, as it is now.

    None where there is no such file, or it is no text. A file that has not been touched is not read again.
    """
    try:
        status = os.stat(file)  # noqa: PTH116  many files before every cell, and a Path costs more than the call
    except OSError:
        return _read_archive(file)
    mark = (status.st_mtime_ns, status.st_size, status.st_ino)
    known = _read.get(file)
    if known is not None and known[0] == mark and status.st_mtime_ns + _TICK_NS < known[1]:
        return known[2]
    now_ns = time.time_ns()
    try:
        found = _decoded(Path(file).read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    _read[file] = (mark, now_ns, found)
    return found


def _read_archive(file: str) -> Source | None:
    try:
        return _decoded(zipimport.zipimporter(os.path.dirname(file)).get_data(file))  # noqa: PTH120  as above
    except (ImportError, OSError, SyntaxError, UnicodeDecodeError):
        return None


def _decoded(data: bytes) -> Source:
    return Source(importlib.util.decode_source(data), len(data), hashlib.blake2b(data, digest_size=16).hexdigest())


@lru_cache(maxsize=4096)
def imports_of(text: str, package: str = "") -> tuple[str, ...]:
    """List the full names of modules that a text imports, at its top or anywhere inside; none if it is not Python.

    `package` is what relative names start from.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = compile(text, "<module>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
    found: dict[str, None] = {}
    for name in lookups.imports(code):
        try:
            found[importlib.util.resolve_name(name, package)] = None
        except ImportError:  # a relative name in what is no package, or beyond its top
            continue
    return tuple(found)


def submodules(modules: Iterable[str], spelled: Collection[str]) -> list[str]:
    """List loaded modules inside these that code may reach by the names that it spells: of `xml`, `xml.etree`."""
    stems = tuple(f"{name}." for name in modules)
    inside = [name for name in list(sys.modules) if name.startswith(stems)] if stems else []
    return [
        name
        for name in inside
        if any(name.startswith(stem) and set(name.removeprefix(stem).split(".")) <= set(spelled) for stem in stems)
    ]


def imports_of_cell(source: str, depth: int = 0) -> tuple[str, ...]:
    """List the full names of modules that a cell imports, from its source as it was typed.

    Its magics are understood. Its strings are searched like cells, since a magic or `exec` may run them, and theirs in
    turn up to `_MAX_TEXTS` deep.
    """
    found: dict[str, None] = {}
    if "import" not in source or depth > _MAX_TEXTS:
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = lookups.as_python(source)
            nodes = list(ast.walk(ast.parse(text)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
    found.update(dict.fromkeys(imports_of(text)))
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(dict.fromkeys(imports_of_cell(node.value, depth + 1)))
    return tuple(found)


def spec_in(module: object) -> ModuleSpec | None:
    """Return the spec that `import` noted in a module, without running the module's own attribute look-up; or None."""
    if not issubclass(type(module), ModuleType):
        return None
    spec = object.__getattribute__(module, "__dict__").get("__spec__")
    return spec if isinstance(spec, ModuleSpec) else None


def location_of(name: str, spec: ModuleSpec | None) -> SourceLocation | None:
    """Tell where a user's own module is.

    None for all others: built in, of the standard library, installed, Bulletin's.
    """
    if spec is None or spec.name != name or name.partition(".")[0] in ON_EACH_SIDE:
        return None
    folders = _folders_of(spec)
    if spec.has_location and spec.origin is not None:
        return SourceLocation(name, spec.origin, folders) if _is_own(spec.origin) else None
    if spec.origin is None and folders and all(map(_is_own, folders)):
        return SourceLocation(name, None, folders)
    return None


def _folders_of(spec: ModuleSpec) -> tuple[str, ...] | None:
    locations: Any = spec.submodule_search_locations
    if locations is None:
        return None
    try:
        return tuple(locations)
    except KeyError:  # a package without `__init__.py` looks its parent up, which somebody has taken out
        return tuple(getattr(locations, "_path", ()))


@lru_cache(maxsize=16384)
def _is_own(path: str) -> bool:
    """Tell whether a path is absolute, and outside the standard library and the folders of installed packages."""
    found = Path(path)
    return found.is_absolute() and _INSTALLED.isdisjoint(found.parts) and not path.startswith(_python_folders())


@lru_cache(maxsize=1)
def _python_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    own = {paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]}
    own.update(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
    own |= {os.path.realpath(path) for path in own}
    own.add(os.path.join(sys.base_prefix, "lib", f"python{sys.version_info[0]}{sys.version_info[1]}.zip"))  # noqa: PTH118
    return tuple(path if path.endswith(".zip") else path + os.sep for path in own)


class Search:
    """Looks modules up by name, as `import` would now. Nothing is imported; what was found once is not looked up again.

    Names of the standard library are never a user's own, unless that is what the process has already loaded.
    """

    def __init__(self) -> None:
        self._found: dict[str, ModuleSpec | None] = {}
        self._cached_finders: dict[
            str, _Finder | None
        ] = {}  # by folder: a finder lists its folder when it is first asked

    def location(self, name: str) -> SourceLocation | None:
        """Find where the user's own module of that name is; None if there is none."""
        return location_of(name, self._spec(name))

    def _spec(self, name: str) -> ModuleSpec | None:
        if name not in self._found:
            self._found[name] = None  # whatever asks for it meanwhile
            self._found[name] = self._look(name)
        return self._found[name]

    def _look(self, name: str) -> ModuleSpec | None:
        if name in sys.modules:
            return spec_in(sys.modules[name])
        parent = name.rpartition(".")[0]
        if not parent:
            if name in sys.stdlib_module_names or name in ON_EACH_SIDE:
                return None
            return self._find(sys.path, name) or _find_editable(name)
        above = self._spec(parent)
        if above is None or above.submodule_search_locations is None:
            return None
        if above.has_location and location_of(parent, above) is None:
            return None  # a package that is installed has no modules of the user's
        return self._find(above.submodule_search_locations, name) or _find_editable(name)

    def _find(self, folders: Iterable[object], name: str) -> ModuleSpec | None:
        """Find a module in folders as `PathFinder` does, which cannot look into packages that are not imported."""
        portions: list[str] = []
        for folder in folders:
            if not isinstance(folder, str):
                continue
            if folder not in self._cached_finders:
                self._cached_finders[folder] = _finder_in(folder)
            finder = self._cached_finders[folder]
            spec = None if finder is None else finder.find_spec(name)
            if spec is None:
                continue
            if spec.loader is not None:
                return spec
            portions += spec.submodule_search_locations or ()
        if not portions:
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = portions
        return spec


def _finder_in(folder: str) -> _Finder | None:
    """Return what finds modules in a folder or archive; None if nothing does.

    A user's folder gets a fresh one: Python's own may not have noticed a file that was written a moment ago.
    """
    try:
        folder = os.path.abspath(folder or os.getcwd())  # noqa: PTH100, PTH109  as in sys.path
    except FileNotFoundError:
        return None
    if _is_own(folder + os.sep) and os.path.isdir(folder):  # noqa: PTH112  as above
        return FileFinder(folder, *_LOADERS)
    found = pkgutil.get_importer(folder)
    return found if isinstance(found, FileFinder | zipimport.zipimporter) else None


def _find_editable(name: str) -> ModuleSpec | None:
    """Ask setuptools' finders of editable installs for a module.

    It is safe to ask them: they are made of two mappings, and run nothing.
    """
    for finder in sys.meta_path:
        home = (finder if isinstance(finder, type) else type(finder)).__module__
        if home.startswith("__editable__"):
            spec = finder.find_spec(name, None)
            if spec is not None:
                return spec
    return None


def unnamed_in(location: SourceLocation) -> Iterator[SourceLocation]:
    """Find all modules of a package that have a source, itself apart; none where they are too many or too large.

    Packages find modules by names that no text spells: plug-ins, lazy look-ups.
    """
    found: list[SourceLocation] = []
    size = 0
    open_folders = [(location.name, folder) for folder in location.folders or ()]
    while open_folders:
        package, folder = open_folders.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            stem, dot, _ = entry.name.partition(".")
            name = f"{package}.{stem}"
            if not stem.isidentifier():
                continue
            if entry.name == f"{stem}.py" and stem != "__init__":
                found.append(SourceLocation(name, entry.path, None))
                size += entry.stat().st_size
            elif not dot and os.path.isfile(start := os.path.join(entry.path, "__init__.py")):  # noqa: PTH113, PTH118
                found.append(SourceLocation(name, start, (entry.path,)))
                open_folders.append((name, entry.path))
        if len(found) > _MAX_UNNAMED or size > _MAX_UNNAMED_BYTES:
            return
    yield from found


def with_parents(names: Iterable[str]) -> Iterator[str]:
    """Yield each full name of a module after those of the packages that it is in."""
    for name in names:
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            yield ".".join(parts[:length])
