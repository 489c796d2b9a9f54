"""The working folder by the notebook's name for it, where another folder stands for it on this side.

In an executor that does not share the notebook's folder, a folder of the session's has its files.
"""

import os
import posixpath

#: Folders of the notebook, and what stands for them here.
_stand_ins: dict[str, str] = {}


def stand_in(theirs: str, ours: str) -> None:
    """Let a folder here be, from now on, what the notebook calls `theirs`."""
    _stand_ins[theirs] = ours


def find() -> str | None:
    """Return the working folder by the notebook's name for it; None where it is gone.

    Whoever has left a folder that stands for one of the notebook's upwards is above that of the notebook.
    """
    here = _here()
    if here is None or not _stand_ins:
        return here
    above = {posixpath.dirname(ours): posixpath.dirname(theirs) for theirs, ours in _stand_ins.items()}
    return _rebase(here, {**above, **{ours: theirs for theirs, ours in _stand_ins.items()}})


def enter(folder: str) -> None:
    """Change to a folder that the notebook calls so, unless this is it. Raises OSError."""
    wanted = _rebase(folder, _stand_ins)
    if wanted != _here():
        os.chdir(wanted)


def _here() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109  a text, since it travels
    except FileNotFoundError:
        return None


def _rebase(path: str, places: dict[str, str]) -> str:
    """Replace the longest of these folders that the path is in."""
    fitting = [before for before in places if path == before or path.startswith(f"{before}/")]
    if not fitting:
        return path
    before = max(fitting, key=len)
    return places[before] + path[len(before) :]
