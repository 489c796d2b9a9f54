"""Which libraries of the notebook a cell uses, and in which version: an executor may have others, or not have them."""

import sys
from functools import cache

import msgspec

from bulletin import __version__, state
from bulletin.libraries import find_spec, version_of
from bulletin.state.build import PYTHON, build
from bulletin.wire.messages import Versions

#: Where what is installed lies; all else is Python's own, or the notebook's.
_INSTALLED = ("site-packages", "dist-packages")


class CellEnvironment(msgspec.Struct, frozen=True):
    """What is said of the notebook's environment with a cell."""

    versions: Versions | None
    libraries: dict[str, str]
    absent: tuple[str, ...] = ()


class NotebookLibraries:
    """What one executor has been told of: each library once."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        #: What it has been told that the notebook lacks.
        self._absent: set[str] = set()
        self._largest_bytes: int | None = None

    def describe(
        self, needs: state.Needs, captured: state.Captured, largest_bytes: int, *, is_new: bool
    ) -> CellEnvironment:
        """Describe what the executor does not know yet; one that `is_new` knows nothing.

        Where larger or smaller libraries may follow a cell than before, by `largest_bytes`, it is told of all again.
        """
        if is_new or self._largest_bytes != largest_bytes:
            self._told.clear()
        if is_new:
            self._absent.clear()
        self._largest_bytes = largest_bytes
        found = {}
        for name in sorted(captured.libraries):
            if name not in self._told and (version := _version(name)) is not None:
                self._told.add(name)
                self._absent.discard(name)
                found[name] = version
        absent = {name.partition(".")[0] for name in needs.imports} - self._absent - self._told
        absent = {name for name in absent if name.isidentifier() and _is_absent(name)}
        self._absent |= absent
        return CellEnvironment(_versions() if is_new else None, found, tuple(sorted(absent)))


@cache
def _versions() -> Versions:
    return Versions(python=PYTHON, bulletin=__version__, build=build())


def _is_absent(name: str) -> bool:
    return name not in sys.stdlib_module_names and name not in sys.modules and find_spec(name) is None


def _version(name: str) -> str | None:
    """Return the version of an installed library, "" if it has none; None for what is no installed one."""
    if not name.isidentifier() or name in sys.stdlib_module_names or name == "__main__":
        return None
    spec = find_spec(name)
    if spec is None:
        return None
    places = [spec.origin or "", *(spec.submodule_search_locations or ())]
    is_installed = any(word in place for place in places for word in _INSTALLED)
    return version_of(name) if is_installed else None
