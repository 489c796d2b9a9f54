"""Where modules are found of libraries that came from the notebook: after all that this environment has itself."""

import importlib.metadata
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class FollowedLibraries:
    """A finder of modules, the last of `sys.meta_path`. `sys.path` stays the notebook's, which travels."""

    def __init__(self) -> None:
        self._folders: list[str] = []

    def add(self, folders: Iterable[str]) -> None:
        """Look there, too, from now on."""
        self._folders += [folder for folder in folders if folder not in self._folders]
        if self._folders and self not in sys.meta_path:
            sys.meta_path.append(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a top module; where one of a package is, that package knows."""
        return PathFinder.find_spec(fullname, self._folders, target) if path is None else None

    def invalidate_caches(self) -> None:
        """Do nothing: what has come stays as it is."""

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context
    ) -> Iterable[importlib.metadata.Distribution]:
        """Find what their metadata says."""
        there = importlib.metadata.DistributionFinder.Context(name=context.name, path=self._folders)
        return importlib.metadata.MetadataPathFinder.find_distributions(there)
