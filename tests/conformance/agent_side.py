"""The agent's side of a zygote and of its executors, as the conformance tests play it."""

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bulletin import state
from bulletin.ids import CellId, LeaseId, UserName
from bulletin.wire import blobs, pipe
from bulletin.wire.frames import Blob, Unpacker, pack
from bulletin.wire.messages import (
    Answer,
    Asked,
    Chunk,
    Ended,
    Exited,
    Fork,
    Forked,
    ForkFailed,
    FromExecutor,
    FromZygote,
    Message,
    Namespaces,
    Noticed,
    Output,
    Ready,
    Run,
    Took,
    Warm,
)
from gpu_worker.agent.cgroups import LeaseCgroup
from gpu_worker.agent.unsent_output import UnsentOutput

#: Until a test gives up. Never what a test waits for.
DEADLINE_S = 120
#: For how long an interrupt may go unnoticed before it is sent again.
_REPEAT_MS = 500
#: Does all that one can to be nobody's process: two forks, a session of its own, another program, no environment.
LEAVES = """
import os, sys
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(writer, str(os.getpid()).encode())
        os.execve('/bin/sleep', ['sleep', '10000'], {})
    os._exit(0)
os.wait()
print(os.read(reader, 100).decode())
"""
#: Leaves its executor's process group, and traces that, whose exit is then told to nobody else.
TRACES = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(0x59616d61, ctypes.c_ulong(2**64 - 1), 0, 0, 0)  # whoever likes may trace it
libc.ptrace.argtypes = [ctypes.c_long] * 4
traced = os.getpid()
reader, writer = os.pipe()
if ctypes.PyDLL(None).fork() == 0:  # by CDLL another thread might have the interpreter, for ever in the fork
    os.setsid()
    os.write(writer, b"traced" if libc.ptrace(0x4206, traced, 0, 0) == 0 else b"not traced")
    while True:  # a signal stops who is traced until the tracer hands it on; of its end it is told, and says nothing
        stopped = os.waitid(os.P_PID, traced, os.WSTOPPED)
        libc.ptrace(7, traced, 0, stopped.si_status)
print(os.read(reader, 100).decode())
"""
#: Lets whoever likes trace it; and a program, not of the pool's, that traces a process.
MAY_BE_TRACED = "import ctypes\nctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(2**64 - 1), 0, 0, 0)"
TRACER = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long] * 4
print(libc.ptrace(0x4206, int(sys.argv[1]), 0, 0), flush=True)
sys.stdin.read()
"""
ROOT = Path(__file__).parent.parent.parent


class Agent:
    """One zygote, and what it says."""

    def __init__(
        self, preload: str = "", log: Path | None = None, under: Sequence[str] = (), guard: str = "", **environ: str
    ) -> None:
        """Start it, by the command `under` and with the `guard` (`write_guard`) if those are given."""
        self.control, theirs = socket.socketpair()
        self.control.settimeout(DEADLINE_S)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        with contextlib.ExitStack() as stack:
            self.process = subprocess.Popen(
                [*under, sys.executable, "-m", "gpu_worker.executor", str(theirs.fileno()), *filter(None, [guard])],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path, "BULLETIN_PRELOAD": preload, **environ},
                stderr=None if log is None else stack.enter_context(log.open("wb")),
            )
        theirs.close()
        self._unpacker = Unpacker[Any](FromZygote)
        self._exited: dict[int, int] = {}
        #: The executors that it has forked.
        self.forked: list[int] = []
        warm = self.hear()
        assert isinstance(warm, Warm)
        self.warm = warm

    def hear(self) -> Message:
        """The zygote's next message."""
        message, _ = self._unpacker.unpack(pipe.receive(self.control))
        assert isinstance(message, Message)
        return message

    def fork(
        self,
        folder: str | None = None,
        uid: int | None = None,
        gid: int | None = None,
        groups: tuple[int, ...] = (),
        namespaces: Namespaces | None = None,
        processes: int = 0,
        user_processes: int = 0,
        cgroup: LeaseCgroup | None = None,
        **environ: str,
    ) -> "Session":
        """An executor that is ready."""
        ours, theirs = socket.socketpair()
        files, its_files = socket.socketpair()
        rings = blobs.make_ring(), blobs.make_ring()
        unsent = UnsentOutput(UserName("ada"))
        links = [theirs.fileno(), *rings, its_files.fileno(), *unsent.descriptors]
        socket.send_fds(self.control, [b"F"], links)
        unsent.close()
        theirs.close()
        its_files.close()
        fork = Fork(
            lease=LeaseId("lease"),
            environ={"BULLETIN_EXECUTOR": "1", **environ},
            folder=folder,
            uid=uid,
            gid=gid,
            groups=groups,
            namespaces=namespaces,
            processes=processes,
            user_processes=user_processes,
        )
        with contextlib.ExitStack() as ends:
            for end in (ours, files):
                ends.callback(end.close)
            for ring in rings:
                ends.callback(os.close, ring)
            pipe.send(self.control, pack(fork))
            while not isinstance(answer := self.hear(), Forked):
                if isinstance(answer, ForkFailed):
                    raise PermissionError(answer.problem)
                self._note(answer)
            self.forked.append(answer.pid)
            session = Session(ours, files, answer.pid, rings)  # not found where it ended before
            ends.pop_all()
        joining = threading.Thread(target=cgroup.add, args=(answer.pid,)) if cgroup is not None else None
        if joining is not None:
            joining.start()
        try:
            ready = session.hear()
            if joining is not None:
                joining.join()
        except EOFError:  # it ended before
            session.close()
            raise
        assert isinstance(ready, Ready)
        assert namespaces is not None or ready.pid == answer.pid
        return session

    def exit_status(self, pid: int) -> int:
        """Wait until this executor has exited."""
        while pid not in self._exited:
            self._note(self.hear())
        return self._exited[pid]

    def _note(self, message: Message) -> None:
        assert isinstance(message, Exited)
        self._exited[message.pid] = message.status

    def close(self) -> None:
        """Hang up: the zygote ends by itself."""
        self.control.close()
        try:
            self.process.wait(DEADLINE_S)
        finally:
            self.process.kill()


class Result:
    """All that a cell has said."""

    def __init__(self) -> None:
        self.outputs: list[tuple[str, dict[str, Any]]] = []
        self.late: list[tuple[CellId, dict[str, Any]]] = []  # what cells before it went on to say
        self.noticed = 0
        self.ended: Ended
        self.parts: list[Blob] = []

    @property
    def outcome(self) -> str:
        return self.ended.outcome

    @property
    def error(self) -> str:
        """The traceback as a person reads it, without colours."""
        assert self.ended.error is not None
        return plain("\n".join(self.ended.error.traceback))

    @property
    def stdout(self) -> str:
        return self.stream("stdout")

    @property
    def stderr(self) -> str:
        return self.stream("stderr")

    def stream(self, name: str) -> str:
        return "".join(
            content["text"] for kind, content in self.outputs if kind == "stream" and content["name"] == name
        )

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Contents of the outputs of one type."""
        return [content for its_kind, content in self.outputs if its_kind == kind]


class Session:
    """One executor's pipe, from the agent's end."""

    def __init__(self, link: socket.socket, files: socket.socket, pid: int, rings: tuple[int, int]) -> None:
        self.link, self.files, self.pid = link, files, pid
        self.link.settimeout(DEADLINE_S)
        self.pidfd = os.pidfd_open(pid)
        self._rings = blobs.map_ring(rings[0]), blobs.map_ring(rings[1])
        for ring in rings:
            os.close(ring)
        self._unpacker = Unpacker[Any](FromExecutor)
        self._heard: list[Blob] = []
        self._cells = 0

    def hear(self) -> Message:
        """The executor's next message; its blobs are in `blobs`."""
        message, self.blobs = self._unpacker.unpack(pipe.receive(self.link))
        assert isinstance(message, Message)
        return message

    def say(self, message: Message, blobs_of_it: Sequence[Blob] = ()) -> None:
        pipe.send(self.link, pack(message, blobs_of_it))

    def start(
        self,
        source: str,
        parts: Sequence[Blob] = (),
        *,
        number: int = 1,
        through_ring: bool = False,
        silent: bool = False,
    ) -> CellId:
        """Send a cell and its state, all of it."""
        self._cells += 1
        cell = CellId(f"{self.pid}-{self._cells}")
        parcel = blobs.describe(parts)
        run = Run(cell=cell, source=source, number=number, parcel=parcel, silent=silent)
        self.say(run, parts if parcel.inline else ())
        if not parcel.inline:
            sender = blobs.Sender(cell, parts, self._rings[0] if through_ring else None)
            while not sender.is_done:
                for chunk, pieces in sender.ready():
                    self.say(chunk, pieces)
                took = self.hear()
                assert isinstance(took, Took), took
                sender.took()
        return cell

    def finish(self, cell: CellId, *, answers: Sequence[str] = (), stop_at: str | None = None) -> Result:
        """Listen until the cell is over. `stop_at`: interrupt once stdout has this text."""
        result, answers = Result(), list(answers)
        receiver: blobs.Receiver | None = None
        while receiver is None or not receiver.is_done:
            match message := self.hear():
                case Output() if message.cell != cell:
                    result.late.append((message.cell, json.loads(bytes(self.blobs[0]))))
                case Output():
                    result.outputs.append((message.type, json.loads(bytes(self.blobs[0]))))
                    if stop_at is not None and stop_at in result.stdout:
                        stop_at = None
                        self.interrupt()
                case Noticed():
                    result.noticed += 1
                case Asked():
                    self.asked = message
                    self.say(Answer(cell=cell, text=answers.pop(0)))
                case Ended():
                    assert message.cell == cell
                    result.ended = message
                    receiver = blobs.Receiver(message.parcel, self.blobs, self._rings[1])
                case Chunk():
                    assert receiver is not None
                    receiver.take(message, self.blobs)
                    self.say(Took(cell=cell))
                case Took():
                    pass
                case _:
                    raise AssertionError(message)
        result.parts = receiver.parts
        return result

    def run(self, source: str, parts: Sequence[Blob] = (), **how: Any) -> Result:
        """Run a cell to its end."""
        late = {name: how.pop(name) for name in ("answers", "stop_at") if name in how}
        return self.finish(self.start(source, parts, **how), **late)

    def interrupt(self) -> None:
        signal.pidfd_send_signal(self.pidfd, signal.SIGINT)

    def interrupt_until_noticed(self) -> None:
        """Interrupt again and again, as the agent does: one alone may come just before it means something."""
        answer = select.poll()
        answer.register(self.link, select.POLLIN)
        while not answer.poll(0):
            self.interrupt()
            answer.poll(_REPEAT_MS)
        noticed = self.hear()
        assert isinstance(noticed, Noticed), noticed

    def is_gone(self) -> bool:
        """Wait for its end, up to the deadline."""
        ended = select.poll()
        ended.register(self.pidfd, select.POLLIN)
        return bool(ended.poll(DEADLINE_S * 1000))

    def close(self) -> None:
        """Hang up: the executor ends by itself."""
        self.link.close()
        self.files.close()
        gone = self.is_gone()
        if not gone:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.close(self.pidfd)
        assert gone, "the executor outlived its agent"


def plain(text: str) -> str:
    """Text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class Ran(NamedTuple):
    """A cell that a notebook has run: what was said, and what came beside the names."""

    result: Result
    extra: dict[str, Any]


class Notebook(dict[str, Any]):
    """A kernel's namespace, whose state goes to executors and comes back."""

    def __init__(self, **names: Any) -> None:
        super().__init__(names)
        self._table = state.Table()
        self._sent: state.Captured | None = None

    def capture(self, source: str) -> list[Blob]:
        """The parcel that goes out with a cell."""
        self._sent = state.capture(self, state.needs(source, self), table=self._table)
        return list(self._sent.parts)

    def run(self, session: Session, source: str, **how: Any) -> Ran:
        """Run a cell with what it needs of the notebook, and take its changes in."""
        result = session.run(source, self.capture(source), **how)
        if not result.parts or self._sent is None:
            self._table.clear()
            return Ran(result, {})
        applied = state.apply(result.parts, self, sent=self._sent)
        return Ran(result, applied.extra)
