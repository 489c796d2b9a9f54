"""Whether a process has ended, asked while it may be just about to."""

import psutil


def has_ended(process: psutil.Process | int) -> bool:
    """Tell whether a process is no more, or only its exit status waits for its parent."""
    try:
        process = psutil.Process(process) if isinstance(process, int) else process
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
