"""`python -m gpu_worker.executor FD [GUARD]`: the zygote, talking to its agent over the inherited descriptor FD."""

import os
import sys

from gpu_worker.executor import environment, job_signals, zygote
from gpu_worker.executor.fork_guard import read_guard


def main() -> None:
    """Serve forks until the agent is gone."""
    clean = environment.without_secrets(os.environ, keep=(zygote.PRELOAD, job_signals.IN_JOB))
    if len(clean) < len(os.environ):
        # Deleting a variable does not take it out of /proc/PID/environ, which every executor could read.
        os.execve(sys.executable, sys.orig_argv, clean)  # noqa: S606
    zygote.serve(int(sys.argv[1]), read_guard(sys.argv[2]) if len(sys.argv) > 2 else None)


if __name__ == "__main__":
    main()
