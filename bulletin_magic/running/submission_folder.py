"""The folder that a cell is submitted from, whose files it finds on its node."""

import os


def submission_folder() -> str | None:
    """Return the notebook's working folder; None where it is gone, its name is no text, or it is the root of all."""
    try:
        folder = os.getcwd()  # noqa: PTH109  a text, since it travels
        folder.encode()
    except (OSError, UnicodeEncodeError):
        return None
    return folder if folder.strip("/") else None
