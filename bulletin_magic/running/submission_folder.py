"""The folder that a cell is submitted from, whose files it finds on its node."""

import os


def submission_folder() -> str | None:
    """Return the notebook's working folder; None where it is gone, or is the root of all folders."""
    try:
        folder = os.getcwd()  # noqa: PTH109  a text, since it travels
    except OSError:
        return None
    return folder if folder.strip("/") else None
