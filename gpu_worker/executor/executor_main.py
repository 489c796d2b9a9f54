"""One executor: takes cells and their state in, runs them one after another, and hands back what they changed."""

import asyncio
import contextvars
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, NoReturn

from msgspec import structs

from bulletin.errors import MalformedMessage
from bulletin.libraries import find_spec
from bulletin.state import Baseline, Changed, Table, changes, missing_modules, restore, whole
from bulletin.state.names import users
from bulletin.wire import blobs
from bulletin.wire.frames import Blob, Unpacker
from bulletin.wire.messages import (
    Answer,
    Chunk,
    Ended,
    EnvironmentFound,
    ErrorText,
    Noticed,
    Ready,
    Return,
    Run,
    Seen,
    ToExecutor,
    Took,
)
from gpu_worker.executor import job_signals
from gpu_worker.executor.agent_link import AgentLink, end_unheard
from gpu_worker.executor.captured_descriptors import CapturedDescriptors
from gpu_worker.executor.cell_errors import (
    cannot_hand_back,
    cannot_take_in,
    never_began,
    refused_before,
    results_are_gone,
)
from gpu_worker.executor.cell_owners import CellOwners
from gpu_worker.executor.environment_check import describe_differences, find_refusal
from gpu_worker.executor.followed_libraries import FollowedLibraries
from gpu_worker.executor.interrupts import Interrupts
from gpu_worker.executor.notebook_folders import NotebookFolders
from gpu_worker.executor.output_stream import OutputStream
from gpu_worker.executor.postmortem import Postmortem
from gpu_worker.executor.relay import Relay
from gpu_worker.executor.result_sender import FinishedCell, ResultSender
from gpu_worker.executor.shell import ZMQInteractiveShell
from gpu_worker.executor.unsent_text import UnsentText

Outcome = Literal["returned", "raised", "interrupted"]
_WORD = re.compile(r"\w+")
_FromAgent = Run | Chunk | Took | Answer | Return | Seen


class _Job(NamedTuple):
    """A cell whose state is here, or could not be taken in."""

    run: Run
    parts: Sequence[Blob]
    problem: ErrorText | None = None


class Executor:
    """Owns the pipe to the agent, the loop, and the shell. `serve` is called once, in the main thread."""

    def __init__(
        self,
        pipe_fd: int,
        ring_in: int,
        ring_out: int,
        folder_fd: int,
        unsent: UnsentText,
        streams: Sequence[int],
        scratch: str,
    ) -> None:
        self._link = AgentLink(pipe_fd)
        self._rings = blobs.map_ring(ring_in), blobs.map_ring(ring_out)
        for ring in (ring_in, ring_out):
            os.close(ring)
        self._loop = asyncio.new_event_loop()
        self._jobs: deque[_Job | Return] = deque()  # a queue of asyncio takes more turns of the loop to wake up
        self._is_waiting = False
        self._interrupts = Interrupts(self._loop, self._notice)
        self._owners = CellOwners()
        self._folders = NotebookFolders(folder_fd, scratch, lambda: self._interrupts.is_stop_wanted)
        self._followed = FollowedLibraries()
        #: Why libraries of the notebook that this environment lacks did not come, as the ends of sentences.
        self._why_not: dict[str, str] = {}
        self._relay = Relay(self._link, self._interrupts, self._owners, unsent)
        self._descriptors = CapturedDescriptors(self._relay, streams)
        self._relay.drain_descriptors = self._descriptors.drain
        #: The cell whose state is on its way.
        self._arriving: tuple[Run, blobs.Receiver] | None = None
        self._results = ResultSender(self._relay, self._rings[1])
        self._table = Table()
        self._postmortem = Postmortem()
        self._context = contextvars.copy_context()
        self._pid = os.getpid()
        #: What the shell itself has put into the namespace; set by `serve`.
        self._shell_names: frozenset[str] = frozenset()

    def serve(self) -> NoReturn:
        """Run cells until the agent hangs up, which ends the process."""
        sys.stdout, sys.stderr = OutputStream(self._relay, 1), OutputStream(self._relay, 2)
        os.register_at_fork(after_in_child=self._become_child)
        self._relay.send(Ready(pid=self._pid))
        self._relay.start()
        self._descriptors.start()
        asyncio.set_event_loop(self._loop)
        self._shell = ZMQInteractiveShell.instance(self._relay)
        self._shell_names = frozenset(self._shell.user_ns)
        self._interrupts.listen()
        self._owners.follow_threads()
        threading.Thread(target=self._read, name="bulletin-reader", daemon=True).start()
        try:
            while True:
                job = self._wait_for_job()
                if isinstance(job, Return):
                    self._hand_over(job)
                else:
                    self._run(job)
                del job  # the values of a cell are not kept by what waits for the next
        finally:
            self._link.end_if_closed()  # a cell that closes all open files closes those of the loop, too

    def _become_child(self) -> None:
        self._interrupts.become_child()
        job_signals.reset_in_child()
        self._relay.become_child()
        self._descriptors.become_child()
        self._folders.become_child()
        self._link.close()  # also where a child has a child: it is closed there

    def _notice(self) -> None:
        self._relay.send(Noticed(cell=self._owners.cell))

    # --- the reader's thread

    def _read(self) -> None:
        unpacker = Unpacker[_FromAgent](ToExecutor)
        try:
            while True:
                frames = self._link.receive()
                try:
                    self._receive(*unpacker.unpack(frames))
                except MalformedMessage as error:
                    self._relay.note_to_user(f"an agent's message was dropped: {error}")
        except (EOFError, OSError, MalformedMessage):
            # The agent is gone or speaks something else, or the cell has closed the link.
            end_unheard()

    def _receive(self, message: _FromAgent, frames: list[Blob]) -> None:
        match message:
            case Run():
                self._arriving = None
                self._results.forget()
                self._owners.cell = message.cell
                if not message.parcel.inline:
                    self._loop.call_soon_threadsafe(self._interrupts.expect)
                try:
                    self._arriving = message, blobs.Receiver(message.parcel, frames, self._rings[0])
                except (MemoryError, MalformedMessage) as error:
                    self._start(_Job(message, (), cannot_take_in(error)))
            case Chunk():
                if self._arriving is not None and self._arriving[0].cell == message.cell:
                    run, receiver = self._arriving
                    try:
                        receiver.take(message, frames)
                    except MalformedMessage as error:
                        self._arriving = None
                        self._start(_Job(run, (), cannot_take_in(error)))
                # Of a refused parcel too: its sender must come to its end.
                self._relay.send_at_once(Took(cell=message.cell))
            case Took():
                self._results.acknowledge(message)
            case Answer():
                self._shell.answers.put(message.text)
            case Return(is_whole=True):  # by the main thread, as it pickles
                self._loop.call_soon_threadsafe(self._add, message)
            case Return():
                self._results.send_again(message)
            case Seen():
                self._results.forget(message.cell)
        if self._arriving is not None and self._arriving[1].is_done:
            run, receiver = self._arriving
            self._arriving = None
            self._start(_Job(run, receiver.parts))

    def _start(self, job: _Job) -> None:
        self._loop.call_soon_threadsafe(self._begin, job)  # once for both: waking the main thread takes its time

    def _begin(self, job: _Job) -> None:
        self._interrupts.expect()
        self._add(job)

    # --- the main thread

    def _add(self, job: _Job | Return) -> None:
        self._jobs.append(job)
        if self._is_waiting:
            self._loop.stop()

    def _wait_for_job(self) -> _Job | Return:
        """Wait for the next job. While there is none, tasks of earlier cells run; a task may stop the loop."""
        self._is_waiting = True
        while not self._jobs:
            self._loop.run_forever()
        self._is_waiting = False
        return self._jobs.popleft()

    def _run(self, job: _Job) -> None:
        run, parts, problem = job
        self._context.run(self._owners.own_context, run.cell)
        if self._interrupts.is_stop_wanted:
            self._end(run, "interrupted", never_began())
            return
        if problem is None:
            problem = self._refuse(run) or self._bring_files(run)
        if problem is None:
            self._bring_libraries(run)
            try:
                background = self._find_background_names(run.source)
                baseline = self._context.run(self._restore, parts, background)
            except Exception as failure:  # noqa: BLE001  unpickling runs anybody's code
                problem = cannot_take_in(failure)
            self._tell_differences(run)  # now that what the notebook has added to sys.path is there
        del job, parts
        if problem is not None:
            self._end(run, "raised", problem)
            return
        began_ns = time.monotonic_ns()
        result, error = self._run_cell(run)
        ran_ms = (time.monotonic_ns() - began_ns) // 1_000_000
        if os.getpid() != self._pid:
            os._exit(0)  # a fork, made by the cell, that has come to the cell's end
        outcome: Outcome = "returned"
        text = None
        self._postmortem.end(error)
        if error is not None:
            outcome = "interrupted" if isinstance(error, KeyboardInterrupt) else "raised"
            text = self._shell.error_text(error)
        for sentence in self._folders.after_cell():
            self._relay.note_to_user(sentence)
        self._exclude_background(background, baseline)
        try:
            extra = {name: value for name, value in (("result", result), ("error", error)) if value is not None}
            changed = self._context.run(self._changes, baseline, extra)
        except Exception as failure:  # noqa: BLE001  pickling runs anybody's code
            self._end(run, "raised", cannot_hand_back(failure), ran_ms=ran_ms)
            return
        self._end(run, outcome, text, changed.parts, ran_ms, changed.touched, extra)

    def _refuse(self, run: Run) -> ErrorText | None:
        """Return why no cell of this notebook can run in this environment."""
        if run.versions is not None:
            missing_modules.forget_missing()  # it is said anew
        missing_modules.note_present(run.libraries)
        missing_modules.note_missing(run.absent)
        why = find_refusal(run.versions) if run.versions is not None else ""
        if not why:
            return None
        self._folders.tell(EnvironmentFound(sentences=(why,), is_refusal=True))
        return refused_before(why)

    def _tell_differences(self, run: Run) -> None:
        """Say which libraries this environment has otherwise than the notebook, before the cell runs that uses them."""
        self._tell(tuple(describe_differences(run.libraries, run.absent, self._why_not)))

    def _tell(self, sentences: tuple[str, ...]) -> None:
        for sentence in sentences:
            self._relay.note_to_user(sentence)
        if sentences:
            self._folders.tell(EnvironmentFound(sentences=sentences))

    def _bring_libraries(self, run: Run) -> None:
        """Have those libraries of the notebook here that the cell uses and that this environment lacks."""
        lacking = [name for name in run.libraries if find_spec(name) is None]
        if lacking:
            done = self._folders.bring_libraries(lacking)
            self._why_not = {name: done.problem or done.refused.get(name, "") for name in lacking}
            self._followed.add(done.folders)
            self._tell(done.notes)

    def _bring_files(self, run: Run) -> ErrorText | None:
        """Have the files of the notebook's folder here, if the node does not share it; return why that cannot be."""
        why, notes = self._folders.before_cell(run.folder, run.cell, run.source)
        for sentence in notes:
            self._relay.note_to_user(sentence)
        return refused_before(why) if why else None

    def _hand_over(self, wanted: Return) -> None:
        """Send the results to another notebook than the one that sent the cell: all that the cell touched, complete."""
        results = self._results.of(wanted.cell)
        if results is None:
            parcel, error = blobs.describe(()), results_are_gone()
            ended = Ended(cell=wanted.cell, outcome="raised", parcel=parcel, ran_ms=0, error=error, round=wanted.round)
            self._relay.send(ended)
            return
        for sentence in self._folders.after_cell():  # if nobody took its files when it ended
            self._relay.note_to_user(sentence)
        ended, parts = results.ended, results.parts
        if parts:
            try:
                parts = self._context.run(whole, self._shell.user_ns, results.touched, extra=results.extra).parts
            except Exception as failure:  # noqa: BLE001  pickling runs anybody's code
                ended, parts = structs.replace(ended, outcome="raised", error=cannot_hand_back(failure)), []
        ended = structs.replace(ended, parcel=blobs.describe(parts))
        full = results._replace(ended=ended, parts=parts)
        self._results.send(full, wanted.round, has_rings=wanted.has_rings, keep=not ended.parcel.inline)

    def _restore(self, parts: Sequence[Blob], background: Mapping[str, object]) -> Baseline | None:
        """Bring the namespace up to date. A cell without state runs in what is there, and hands nothing back."""
        if not parts:
            return None
        namespace = self._shell.user_ns
        before = {id(unit.root) for unit in self._table.units.values()} if background else set()
        baseline = restore(parts, namespace, self._table, keep=self._shell_names | background.keys())
        dropped = before - {id(unit.root) for unit in self._table.units.values()}
        for name in [
            name for name, value in background.items() if id(value) in dropped and namespace.get(name) is value
        ]:
            del namespace[name]  # the notebook has no such value any more: its memory is freed
        return baseline

    def _find_background_names(self, source: str) -> dict[str, object]:
        """Find the variables that threads and tasks of earlier cells may look up and this cell's source does not name.

        They stay as they are. Empty where no such thread or task runs.
        """
        if not self._owners.has_threads and not any(not task.done() for task in asyncio.all_tasks(self._loop)):
            return {}
        namespace, spelled = self._shell.user_ns, set(_WORD.findall(source))
        return {name: namespace[name] for name in users(namespace, self._shell_names) if name not in spelled}

    def _exclude_background(self, background: Mapping[str, object], baseline: Baseline | None) -> None:
        """Leave background names out of the results, unless they came with the cell too, or have been bound anew."""
        if baseline is not None:
            namespace = self._shell.user_ns
            still = {
                name for name, value in background.items() if name not in baseline.came and namespace.get(name) is value
            }
            baseline.keep = self._shell_names | still

    def _changes(self, baseline: Baseline | None, extra: Mapping[str, object]) -> Changed:
        if baseline is None:
            return Changed([], [], [])
        return changes(self._shell.user_ns, baseline, extra=extra)

    def _run_cell(self, run: Run) -> tuple[object, BaseException | None]:
        """Run the cell's code; return its value and its error, whatever happens in it."""
        try:
            try:
                self._postmortem.begin(run.source, self._shell)
                self._shell.begin(run.source, run.number, run.request, is_whole=run.is_whole)
                self._interrupts.begin()
                done = self._interrupts.drive(
                    self._shell.run(run.source, silent=run.silent),
                    lambda work: self._loop.create_task(work, name=f"cell {run.number}", context=self._context),
                )
            finally:
                self._interrupts.finish()
        except BaseException as stopped:  # noqa: BLE001  the stop button at the very end, or IPython's own failure
            return None, stopped
        return done.result, done.error_in_exec or done.error_before_exec

    def _end(
        self,
        run: Run,
        outcome: Outcome,
        error: ErrorText | None,
        parts: Sequence[Blob] = (),
        ran_ms: int = 0,
        touched: Sequence[str] = (),
        extra: Mapping[str, object] = {},
    ) -> None:
        self._descriptors.flush()
        self._interrupts.end()
        parcel = blobs.describe(parts)
        ended = Ended(cell=run.cell, outcome=outcome, parcel=parcel, ran_ms=ran_ms, error=error)
        self._results.send(FinishedCell(ended, parts, touched, extra), 0, has_rings=run.has_rings)
