"""Which version of a library is installed, asked without importing it."""

import importlib.metadata
import importlib.util
import os
import sys
import sysconfig
from importlib.machinery import ModuleSpec, PathFinder

#: As long as a version may be on the wire.
_LONGEST = 100


def find_spec(name: str) -> ModuleSpec | None:
    """Find where a top module is; None if there is none, or nobody can say."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    except Exception:  # noqa: BLE001  a finder in `sys.meta_path` is a cell's, which may lack what it relies on
        return None if "." in name else _find_on_path(name)


def _find_on_path(name: str) -> ModuleSpec | None:
    try:
        return PathFinder.find_spec(name)
    except (ImportError, ValueError, OSError):
        return None


def version_of(name: str) -> str:
    """Return the version of the distribution of a module's name, or what the loaded module says; empty if neither."""
    try:
        return importlib.metadata.version(name)[:_LONGEST]
    except (importlib.metadata.PackageNotFoundError, ValueError):
        said = getattr(sys.modules.get(name), "__version__", "")
        return said[:_LONGEST] if isinstance(said, str) else ""


def platform() -> str:
    """Say what compiled modules are called here, and for which machine: those for another one do not load."""
    return f"{sysconfig.get_config_var('EXT_SUFFIX')} {sysconfig.get_platform()}"


def glibc() -> str:
    """Return the version of the C library here, as "2.36"; empty where it is another one than glibc."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        return ""
    return version if name == "glibc" else ""
