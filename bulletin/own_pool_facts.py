"""Where a pool of the user's own is, and whether one could be started here: for a kernel, and for its page's server."""

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

#: What `bulletin[pool]` installs and the pool imports.
_NEEDED = ("sqlalchemy", "alembic", "structlog", "pynvml")


def name_folder(environ: Mapping[str, str]) -> Path:
    """Name the folder of this user's pool for this interpreter, whether it is there or not."""
    if named := environ.get("BULLETIN_RUNTIME_DIR", ""):
        base = Path(named)
    elif runtime := environ.get("XDG_RUNTIME_DIR", ""):
        base = Path(runtime) / "bulletin"
    else:
        base = Path.home() / ".local" / "share" / "bulletin" / "run"
    return base / f"pool-{hashlib.sha256(sys.executable.encode()).hexdigest()[:12]}"


def can_start() -> bool:
    """Tell whether what a pool needs is installed here."""
    return all(importlib.util.find_spec(name) is not None for name in (*_NEEDED, "gpu_worker"))
