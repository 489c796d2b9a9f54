"""Writes that are whole: at the end of a disk or a quota the system takes a part, and says no more than how much."""

import os


def write_whole(descriptor: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write all of it there. Raises OSError where there is no room for the rest."""
    view = memoryview(data).cast("B")
    while view:
        written = os.pwrite(descriptor, view, position)
        view, position = view[written:], position + written
