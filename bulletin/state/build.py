"""Which build of this folder it is: two sides that pickle by different code do not understand each other."""

import sys
from functools import cache
from pathlib import Path

import xxhash

#: The minor version of Python: the code of functions travels, and is another in each.
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


@cache
def build() -> str:
    """Return a hash of the sources here, and of what they rely on; empty where they cannot be read."""
    here = Path(__file__).parent
    seen = xxhash.xxh3_128()
    try:
        for folder in (here, here.parent / "cpython"):
            for file in sorted(folder.rglob("*.py")):
                seen.update(file.relative_to(folder).as_posix().encode())
                seen.update(file.read_bytes())
    except OSError:
        return ""
    return seen.hexdigest()
