"""The zygote: has imported the heavy libraries, has not touched CUDA, has one thread, and forks executors on request.

It owns no cell and no user data. It dies with its agent, and its executors die with it.
"""

import contextlib
import gc
import importlib
import importlib.util
import os
import select
import signal
import socket
import sys
import traceback
from typing import NoReturn

from bulletin.errors import MalformedMessage
from bulletin.state.build import build
from bulletin.wire import passed_descriptors, pipe
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.messages import Exited, Fork, Forked, ForkFailed, FromZygote, SignalGroup, ToZygote, Warm
from gpu_worker.executor import comms, environment, job_signals
from gpu_worker.executor.executor_main import Executor
from gpu_worker.executor.fork_guard import ForkGuard
from gpu_worker.executor.forked_executors import ForkedExecutors
from gpu_worker.executor.log_copier import LogCopier, make_way
from gpu_worker.executor.namespaces import fork_into_pid_namespace
from gpu_worker.executor.unsent_text import UnsentText

#: Modules to import before the first fork, comma separated.
PRELOAD = "BULLETIN_PRELOAD"
#: What IPython imports at its first cell, its first `!program` and its first traceback: half a second, once for all.
_USED_SOON = (
    "IPython.core.application",
    "IPython.core.completer",
    "IPython.core.completerlib",
    "IPython.core.logger",
    "IPython.core.magics",
    "IPython.core.oinspect",
    "bdb",
    "pexpect",
    "pure_eval",
    "pygments.formatters.terminal256",
    "pygments.lexers.python",
    "pygments.styles",
    "resource",
    "stack_data",
    "tempfile",
)
#: What comes beside a fork, in this order.
LINKS = (
    *("pipe", "ring in", "ring out", "pipe for folders"),
    *("unsent text", "reader of stdout", "stdout", "reader of stderr", "stderr"),
)
_DESCRIPTORS = len(LINKS)
#: So often it looks for strays by itself: one that traces an executor keeps the signal of that one's exit from here.
_LOOK_MS = 1000


def serve(control_fd: int, guard: ForkGuard | None = None) -> NoReturn:
    """Import, say Warm, then fork until the agent hangs up; what `guard` admits, if there is one."""
    os.set_inheritable(control_fd, False)
    environment.die_with_parent(os.getppid())
    environment.adopt_orphans()
    control = socket.socket(fileno=control_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job_signals.leave_to_agent()
    logs = LogCopier()
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)

    warm = _preload(os.environ.pop(PRELOAD, ""))
    gc.collect()
    gc.freeze()  # so that collections in executors do not touch, and copy, the pages that they share
    _send(control, warm)

    executors = ForkedExecutors()
    waiting = select.poll()
    waiting.register(control, select.POLLIN)
    waiting.register(woken, select.POLLIN)
    try:
        while True:
            ready = {fd for fd, _ in waiting.poll(_LOOK_MS if executors.children else None)}
            if woken in ready:
                os.read(woken, 4096)
            if woken in ready or not ready:
                for exited in executors.reap():
                    logs.end(exited.pid)
                    _send(control, Exited(pid=exited.pid, status=exited.status))
                environment.end_strays({logs.pid, *executors.children})
            if control.fileno() in ready:
                _obey(control, executors, logs, guard)
    finally:
        logs.close()


def _preload(names: str) -> Warm:
    """Import what is there. A library that is not installed is no failure; one that breaks must not end the pool."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    environment.choose_plots()
    comms.install()
    for name in _USED_SOON:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    build()  # so that no executor reads the sources again
    imported, failed = [], {}
    for name in filter(None, (word.strip() for word in names.split(","))):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name.partition(".")[0] and error.name != name:
                failed[name] = str(error)
        except Exception as error:  # noqa: BLE001  an import runs anybody's code
            failed[name] = f"{type(error).__name__}: {error}"
        else:
            imported.append(name)
    for name, problem in failed.items():
        _log(f"could not import {name}: {problem}")
    return Warm(imported=tuple(imported), failed=failed)


def _obey(control: socket.socket, executors: ForkedExecutors, logs: LogCopier, guard: ForkGuard | None) -> None:
    """Do what the agent says next."""
    try:
        mark, descriptors = passed_descriptors.receive(control, 1, _DESCRIPTORS)
    except ConnectionResetError:
        mark = b""
    if not mark:
        sys.exit(0)  # the agent is gone; the executors follow by themselves
    try:
        message, _ = Unpacker[Fork | SignalGroup](ToZygote).unpack(pipe.receive(control))
        if isinstance(message, Fork) and len(descriptors) != _DESCRIPTORS:
            raise MalformedMessage(f"{len(descriptors)} descriptors beside a fork, {_DESCRIPTORS} expected")
    except (EOFError, OSError):
        sys.exit(0)
    except MalformedMessage as error:
        _log(str(error))
        for descriptor in descriptors:
            os.close(descriptor)
        return
    if isinstance(message, SignalGroup):
        executors.send_signal(message.pid, message.number)
    else:
        _fork(control, executors, logs, message, descriptors, guard)
    for descriptor in descriptors:
        os.close(descriptor)


def _fork(
    control: socket.socket,
    executors: ForkedExecutors,
    logs: LogCopier,
    fork: Fork,
    descriptors: list[int],
    guard: ForkGuard | None,
) -> None:
    if not environment.is_cuda_untouched():
        _log("a preloaded library has initialised CUDA, which cannot be forked. Take it out of the preload list.")
        sys.exit(1)
    zygote = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    log_end: int | None = None
    try:
        fork = fork if guard is None else guard.admit(fork)
        log_end, its_end = make_way()
        descriptors.append(its_end)
        with fork_into_pid_namespace() if fork.namespaces is not None else contextlib.nullcontext() as init:
            pid = os.fork()
            if pid == 0:
                _be_executor(fork, zygote, descriptors)
    except (OSError, LookupError) as error:  # too many processes, or no memory: this executor's problem, and no other's
        if log_end is not None:
            os.close(log_end)
        _log(f"could not fork: {error}")
        _send(control, ForkFailed(lease=fork.lease, problem=str(error)))
    else:
        executors.add(pid, init)
        logs.follow(pid, log_end, f"lease {fork.lease}")
        _send(control, Forked(lease=fork.lease, pid=pid, init=init.pid if init is not None else None))


def _be_executor(fork: Fork, zygote: int, descriptors: list[int]) -> NoReturn:
    """Become the executor. Of `descriptors` the last one is for what it has to say to the log."""
    *links, log = descriptors
    try:
        environment.keep_only(log, links)
        pipe_fd, ring_in, ring_out, folder_fd, unsent, *streams = links
        if fork.uid is not None:
            environment.give_pipes(streams, fork.uid)
        environment.become_executor(fork, zygote)
        Executor(pipe_fd, ring_in, ring_out, folder_fd, UnsentText(unsent), streams, fork.scratch).serve()
    except BaseException as error:  # noqa: BLE001  a fork must never return into the zygote's loop
        os.dup2(log, 2)  # away from the cell's output
        sys.stderr = sys.__stderr__
        traceback.print_exception(error)
        print("the executor could not go on, see above", file=sys.stderr, flush=True)  # noqa: T201
    finally:
        os._exit(70)


def _send(control: socket.socket, message: FromZygote) -> None:
    try:
        pipe.send(control, pack(message))
    except OSError:
        sys.exit(0)


def _log(sentence: str) -> None:
    print(f"bulletin zygote {os.getpid()}: {sentence}", file=sys.stderr, flush=True)  # noqa: T201
