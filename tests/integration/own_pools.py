"""Pools that cells have started by themselves."""

from pathlib import Path

import psutil

from tests.processes import has_ended


def pools(folder: Path) -> list[psutil.Process]:
    """The pools that live in a folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "pool" in words and any(str(folder) in word for word in words) and not has_ended(process):
            found.append(process)
    return found
