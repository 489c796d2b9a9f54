"""A module of the user's as the notebook has loaded it."""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType

from bulletin.state.modules import attributes, sources
from bulletin.state.modules.patches import codes_of
from bulletin.state.modules.shipment import ModuleLoad
from bulletin.state.modules.sources import Source, SourceLocation


@dataclass
class LoadedModule:
    """A module of the user's as it was when it was first seen after it was loaded."""

    spec: ModuleSpec
    module: weakref.ref[ModuleType]
    location: SourceLocation
    source: Source | None
    load: ModuleLoad
    seen: attributes.State
    is_patched: bool
    definitions: Mapping[str, weakref.ref[FunctionType | type]]
    codes: Mapping[str, CodeType]

    @cached_property
    def base(self) -> attributes.State:
        """Work out the globals that importing the module there gives."""
        return attributes.after_import(self.source and self.source.text, self.seen)

    @property
    def is_patched_in_place(self) -> bool:
        """Whether its functions have the code of an edited file without a reload, as `%autoreload` may give it."""
        module, file = self.module(), self.location.file
        if module is None or self.source is None or file is None:
            return False
        on_file = sources.source_of(file)
        return on_file is not None and on_file.digest != self.source.digest and codes_of(module) != self.codes
