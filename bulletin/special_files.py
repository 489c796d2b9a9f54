"""What is in a folder and is neither file, folder nor link: it does not follow a cell."""

import stat


def special_kind(mode: int) -> str:
    """Return what people call a special file, by its mode; empty for a file, folder or link."""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode):
        return ""
    return "named pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
