"""The inside of `import` and `os`: tracebacks through a loader, modules half-way imported, the environment's bytes."""

import os
from importlib.machinery import ModuleSpec
from typing import Any


def as_import_machinery(function: Any) -> Any:
    """Let Python cut a loader's frame out of tracebacks, as it does with its own: it knows those by their file."""
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    return function


def is_being_imported(spec: ModuleSpec | None) -> bool:
    """Whether the module's code is running for the first time at this moment, in whatever thread."""
    return bool(getattr(spec, "_initializing", False))


def read_environ() -> dict[bytes, bytes]:
    """A copy of the environment as the system has it: `os.environb` copied item by item costs 0.1 ms a cell."""
    return dict(os.environ._data)  # type: ignore[attr-defined]
