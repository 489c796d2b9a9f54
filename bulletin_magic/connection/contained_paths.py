"""Paths that cannot leave a folder: each step is taken from the folder before it, and none goes through a link.

Whoever names such a path may be anybody, and may change the folder meanwhile: nothing is checked first and used later.
"""

import contextlib
import os
from collections.abc import Iterator

#: So many steps a path has at most.
DEEPEST = 64
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: Our own files in a folder, which nobody is shown.
OWN_PREFIX = ".bulletin-"


class PathEscapes(ValueError):
    """A path that is none of a file in its folder."""


def split(path: str) -> list[str]:
    """Return the steps of a relative path. Raises PathEscapes for one that leads elsewhere, or could."""
    steps = path.split("/")
    is_bad = any(step in {"", ".", ".."} or step.startswith(OWN_PREFIX) for step in steps)
    if is_bad or "\0" in path or len(steps) > DEEPEST:
        raise PathEscapes(f"{path!r} is not a path in the notebook's folder")
    return steps


@contextlib.contextmanager
def open_parent(root: str, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder that a path's last step is in; give its descriptor and that step.

    Raises PathEscapes, or OSError where a step is missing, no folder, or a link.
    """
    *steps, name = split(path)
    descriptor = os.open(root, _FOLDER)
    try:
        for step in steps:
            inner = os.open(step, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, name
    finally:
        os.close(descriptor)


def open_folder(root: str, path: str) -> int:
    """Open a folder in the root, or the root itself for an empty path. Raises PathEscapes or OSError."""
    if not path:
        return os.open(root, _FOLDER)
    with open_parent(root, path) as (parent, name):
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
