"""`python -m gpu_worker.executor.namespace_check`: says why executors can have no namespaces here; nothing if they can.

It does all that is done for an executor, in a process that ends at once.
"""

import os
import sys

from bulletin.wire.messages import Namespaces
from gpu_worker.executor.namespaces import enter, fork_into_pid_namespace


def main() -> None:
    """Make namespaces, and print the problem, if there is one, on standard output."""
    reader, writer = os.pipe()
    try:
        with fork_into_pid_namespace() as init:
            pid = os.fork()
            if pid == 0:
                _try_to_enter(writer)
        os.close(writer)
        init.end()
        with os.fdopen(reader) as said:
            problem = said.read()
        for child in (pid, init.pid):
            os.waitpid(child, 0)
    except OSError as error:
        problem = str(error)
    sys.stdout.write(problem)


def _try_to_enter(writer: int) -> None:
    try:
        enter(Namespaces(), sys.path)
    except OSError as error:
        os.write(writer, str(error).encode())
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
