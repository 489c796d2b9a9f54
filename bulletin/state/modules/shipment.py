"""What the two sides tell each other of modules: plain data, in which values are the sender's own objects."""

import contextlib
import io
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bulletin.state import ambient
from bulletin.state.modules.attributes import GlobalChange, State

#: What a module may change in passing.
_RUNNING: tuple[str, ...] = ("random", "numpy", "torch", "folder")


class ModuleLoad(NamedTuple):
    """One time that a module was run: in which module object, and which run of it. Equal on both sides."""

    module: str
    run: str


class ModuleEntry(NamedTuple):
    """One module of the user's.

    `digest` names the text that the notebook has run, `on_file` what is in the file now: a reload and a second import
    run that. Both are the same for a module that the notebook has not loaded, and None for one without a text.
    `is_patched` where functions and classes from before a reload were given the new code, as `%autoreload` does it.
    """

    file: str | None
    folders: tuple[str, ...] | None
    digest: str | None
    on_file: str | None
    loaded: ModuleLoad | None
    is_compiled: bool = False
    is_patched: bool = False


@dataclass(frozen=True, slots=True)
class Shipment:
    """What an executor needs of the notebook's modules before a cell.

    `entries` is None where they are those that were sent as `table` before. `texts` are by digest. `wanted` are loaded
    in the notebook, and imported by the cell or, where inside a package, spelled by it. `attributes` is what was
    changed in modules after they were imported.
    """

    table: str
    entries: Mapping[str, ModuleEntry] | None
    texts: Mapping[str, str]
    wanted: tuple[str, ...]
    attributes: Mapping[str, GlobalChange]

    def __bool__(self) -> bool:
        return self.entries is not None or bool(self.texts or self.wanted or self.attributes)


@dataclass(frozen=True, slots=True)
class Known:
    """What an executor has of the notebook's modules. Of a new one: `Known()`."""

    table: str = ""
    entries: Mapping[str, ModuleEntry] = field(default_factory=dict)
    digests: frozenset[str] = frozenset()
    attributes: Mapping[str, tuple[ModuleLoad, State]] = field(default_factory=dict, repr=False)

    def has_any(self, names: Collection[str]) -> bool:
        """Tell whether any of these top names is that of a module that the executor has of the notebook."""
        return any(name.partition(".")[0] in names for name in self.entries)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a cell did to modules.

    `loaded` has those that it loaded first or anew, `reloaded` those that it ran again in the same module object, each
    with the digest of the text; `removed` are those that it took out of `sys.modules`.
    """

    loaded: Mapping[str, tuple[ModuleLoad, str | None]]
    reloaded: Mapping[str, tuple[ModuleLoad, str | None]]
    removed: tuple[str, ...]
    attributes: Mapping[str, GlobalChange]

    def __bool__(self) -> bool:
        return bool(self.loaded or self.reloaded or self.removed or self.attributes)


def new_id() -> str:
    """Draw an id at random, which neither side has used."""
    return os.urandom(8).hex()


@contextlib.contextmanager
def unnoticed() -> Iterator[None]:
    """Hide that a module's text runs inside the `with`, as the other side has run it already.

    What it prints is dropped; random generators and the current folder are put back as they were.
    """
    before = ambient.snapshot()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            yield
        finally:
            kept: ambient.Ambient = {kind: before[kind] for kind in _RUNNING if kind in before}
            ambient.settle(kept, is_overlay=False)
