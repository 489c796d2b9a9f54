"""Whether two processes run on the same host, since it was started last: then they may share memory."""

from pathlib import Path


def read_boot_id() -> str:
    """Return what the kernel drew at its start: the same in every process of one host, whatever container it is in.

    Raises
    ------
    OSError
        On a system that has no such file.
    """
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
