"""The working folder by the notebook's name for it, where another folder stands for it on this side.

In an executor that does not share the notebook's folder, a folder of the session's has its files.
"""

import os

#: Folders of the notebook and what stands for them here, those inside others first.
_stand_ins: list[tuple[str, str]] = []


def stand_in(theirs: str, ours: str) -> None:
    """Let a folder here be, from now on, what the notebook calls `theirs`."""
    _stand_ins.append((theirs, ours))
    _stand_ins.sort(key=lambda pair: -len(pair[0]))


def find() -> str | None:
    """Return the working folder by the notebook's name for it; None where it is gone."""
    try:
        here = os.getcwd()  # noqa: PTH109  a text, since it travels
    except FileNotFoundError:
        return None
    return _rebase(here, [(ours, theirs) for theirs, ours in _stand_ins])


def enter(folder: str) -> None:
    """Change to a folder that the notebook calls so. Raises OSError."""
    os.chdir(_rebase(folder, _stand_ins))


def _rebase(path: str, pairs: list[tuple[str, str]]) -> str:
    for before, after in pairs:
        if path == before or path.startswith(f"{before}/"):
            return after + path[len(before) :]
    return path
