"""Where a pool of the user's own is, for whoever looks for it: a kernel, or the notebook server of its page."""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path


def name_folder(environ: Mapping[str, str]) -> Path:
    """Name the folder of this user's pool for this interpreter, whether it is there or not."""
    if named := environ.get("BULLETIN_RUNTIME_DIR", ""):
        base = Path(named)
    elif runtime := environ.get("XDG_RUNTIME_DIR", ""):
        base = Path(runtime) / "bulletin"
    else:
        base = Path.home() / ".local" / "share" / "bulletin" / "run"
    return base / f"pool-{hashlib.sha256(sys.executable.encode()).hexdigest()[:12]}"
