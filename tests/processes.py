"""Whether a process has ended, and whether one reads a pipe, asked while it may be just about to."""

import os
from pathlib import Path

import psutil


def has_ended(process: psutil.Process | int) -> bool:
    """Tell whether a process is no more, or only its exit status waits for its parent."""
    try:
        process = psutil.Process(process) if isinstance(process, int) else process
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def is_read(fifo: Path) -> bool:
    """Tell whether some process has this pipe open to read."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def is_running(process: psutil.Process, word: str) -> bool:
    """Tell whether a process runs that has this among its words; one that has ended has none."""
    try:
        return word in process.cmdline()
    except psutil.NoSuchProcess:  # a zombie is one
        return False
