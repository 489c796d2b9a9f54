"""One cell's way to its node and back: its state goes out, its outputs come in, it is stopped, its results return."""

from collections.abc import Callable
from typing import assert_never

from bulletin.codes import CellOutcome
from bulletin.errors import IllegalMove
from bulletin.ids import SHORT, RequestId
from bulletin.wire import messages as say
from bulletin.wire.blobs import Receiver, Sender, describe
from bulletin.wire.frames import Blob
from bulletin_magic.connection.cell_phase import CELL_TRANSITIONS, CellPhase
from bulletin_magic.connection.deliveries import (
    CellFinished,
    CellSent,
    Delivery,
    OutputMessage,
    QuestionAsked,
    UserNote,
)
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.connection.session_events import AgentConnected, CellSubmitted
from bulletin_magic.connection.stop_schedule import StopSchedule

#: Outputs are acknowledged after so many, or after so long.
ACKNOWLEDGE_COUNT, ACKNOWLEDGE_MS = 64, 100
NEVER_RAN = "The cell was stopped before it ran."
MAY_HAVE_BEGUN = "It was sent there and may have begun: its node did not say."

#: What an agent says about one cell.
CellMessage = say.Chunk | say.Took | say.Output | say.Asked | say.Ended


class CellRun:
    """A cell under way. Everything here ends with the cell. The session owns it and finds it a lease."""

    def __init__(
        self,
        submitted: CellSubmitted,
        phase: CellPhase,
        now_ms: int,
        send_to_agent: Callable[[say.KernelToAgent, tuple[Blob, ...]], None],
        deliver: Callable[[Delivery], None],
    ) -> None:
        """Begin QUEUED, or ATTACHING where there is a lease."""
        self.submitted, self.cell = submitted, submitted.cell
        self.phase = phase
        self._send_to_agent, self._deliver = send_to_agent, deliver
        #: How many leases it has asked for, and how many of them were reclaimed while it ran.
        self.tries = 1
        self.reclaims = 0
        self._submitted_ms = now_ms
        self._sent_ms: int | None = None
        self._lease: LeaseInfo | None = None
        #: The agent is known to have taken the Run in.
        self.is_taken = False
        #: One of its leases was lost when it had all of the cell, or was reclaimed.
        self.may_have_begun = False
        self._sender: Sender | None = None
        #: Chunks that were sent and not yet taken in.
        self._outstanding = 0
        #: The sequence numbers of the last output that arrived, and of the last that was acknowledged.
        self.last_seq = 0
        self._acknowledged_seq = 0
        self._acknowledge_due_ms: int | None = None
        self._is_asking = False
        #: The number of the question that is asked, or was asked last, and what was typed.
        self._question = 0
        self._answer = ""
        self._ended: say.Ended | None = None
        self._receiver: Receiver | None = None
        self._stop = StopSchedule(submitted.stop_after_ms)
        #: Why the lease is over, and how the cell ends then, if the broker said so while the agent could be heard.
        self.revoked = ""
        self.revoked_outcome: CellOutcome | None = None
        self._said: set[str] = set()

    @property
    def is_under_way(self) -> bool:
        """Whether the agent has it, or soon will."""
        return self.phase not in {CellPhase.QUEUED, CellPhase.ATTACHING}

    @property
    def is_sent(self) -> bool:
        """Whether the Run has been sent to the lease of now."""
        return self._sent_ms is not None

    @property
    def is_stopping(self) -> bool:
        """Whether the user has pressed stop."""
        return self._stop.presses > 0

    @property
    def deadline_ms(self) -> int | None:
        """When `tick` has something to do."""
        dues = (self._acknowledge_due_ms, self._stop.deadline_ms, self._wait_until_ms)
        return min((due for due in dues if due is not None), default=None)

    @property
    def _wait_until_ms(self) -> int | None:
        """When it has waited for as long as it may. A cell that has run, and is to run again, waits on."""
        max_wait_ms = self.submitted.max_wait_ms
        if max_wait_ms is None or self.phase is not CellPhase.QUEUED or self.reclaims:
            return None
        return self._submitted_ms + max_wait_ms

    def has_waited_too_long(self, now_ms: int) -> bool:
        """Tell whether it is time to leave the queue."""
        return self._wait_until_ms is not None and self._wait_until_ms <= now_ms

    def waited_ms(self, now_ms: int) -> int:
        """Return for how long it has been asking for a lease."""
        return now_ms - self._submitted_ms

    # --- the lease

    def lease_request(self) -> say.Submit | say.Join:
        """Return the request for a lease. Each try is a request of its own."""
        resources, request = self.submitted.resources, self.submitted.request
        if self.tries > 1:
            request = RequestId(f"{request}-{self.tries}")
        if self.submitted.joins is not None:
            return say.Join(request=request, cell=self.cell, agent=self.submitted.joins)
        return say.Submit(
            request=request,
            qos=resources.usual_qos if resources.qos is None else resources.qos,
            is_qos_asked=resources.qos is not None,
            gpus=resources.gpus,
            walltime_ms=resources.walltime_ms,
            project=resources.project,
            environment=resources.environment,
            label=resources.label,
            gpu_type=resources.gpu_type,
            gpu_memory_bytes=resources.gpu_memory_bytes,
            cpus=resources.cpus,
            memory_bytes=resources.memory_bytes,
            keep_ms=resources.keep_ms,
            is_exclusive=resources.is_exclusive,
        )

    def is_own_request(self, request: RequestId | None) -> bool:
        """Tell whether this is the request of one of its tries."""
        own = self.submitted.request
        return request is not None and (request == own or request.startswith(f"{own}-"))

    def requeue(self) -> None:
        """Go back to the queue: the lease came to nothing before the cell ran."""
        self.tries += 1
        self._sent_ms, self._sender, self._outstanding, self.is_taken = None, None, 0, False
        if self.phase is not CellPhase.QUEUED:
            self.move(CellPhase.QUEUED)

    def restart(self) -> None:
        """Go back to the queue after the cell has run: its outputs are counted from 1 again, and it waits on."""
        self.reclaims += 1
        self.may_have_begun = True
        self.last_seq = self._acknowledged_seq = 0
        self._acknowledge_due_ms = None
        self._is_asking, self._question = False, 0
        self._ended = self._receiver = None
        self.requeue()

    # --- out

    def join(self, lease: LeaseInfo, now_ms: int) -> None:
        """Take part in a cell that the agent has already: it tells what the cell has said so far."""
        self._sent_ms, self._lease, self.is_taken = now_ms, lease, True
        self._deliver(CellSent(lease))
        self.move(CellPhase.RUNNING)

    def note_lease(self, lease: LeaseInfo | None) -> None:
        """Take what is known now of the lease that it was sent to."""
        if self._lease is not None and lease is not None:
            self._lease = lease

    def send(self, lease: LeaseInfo, rings: AgentConnected, now_ms: int, folder: say.FolderProbe | None = None) -> None:
        """Send the cell, and as much of its state as may go at once. Also when the agent never got it."""
        if self.phase is not CellPhase.ATTACHING:
            self.move(CellPhase.ATTACHING)
        parts, ring_out = self.submitted.parts, rings.ring_out
        parcel = describe(parts)
        self._sender = None if parcel.inline else Sender(self.cell, parts, ring_out)
        self._sent_ms, self._lease, self._outstanding, self.is_taken = now_ms, lease, 0, False
        message = say.Run(
            cell=self.cell,
            source=self.submitted.source,
            number=self.submitted.number,
            parcel=parcel,
            has_rings=ring_out is not None,
            silent=self.submitted.is_call,
            request=self.submitted.message,
            is_whole=self.submitted.is_whole,
            outlives_kernel=self.submitted.outlives_kernel,
            label=self.submitted.resources.label,
            folder=folder,
            versions=self.submitted.versions,
            libraries=self.submitted.libraries,
            absent=self.submitted.absent,
        )
        self._send_to_agent(message, parts if parcel.inline else ())
        self._deliver(CellSent(lease))
        self.move(CellPhase.RUNNING if self._sender is None else CellPhase.SHIPPING)
        self._send_ready_chunks()

    def _send_ready_chunks(self) -> None:
        """Send as many chunks of the state as the window has room for."""
        if self._sender is None or self.phase is not CellPhase.SHIPPING:
            return
        for chunk, pieces in self._sender.ready():
            self._outstanding += 1
            self._send_to_agent(chunk, tuple(pieces))
        if self._sender.is_done:
            self.move(CellPhase.RUNNING)

    # --- back

    def take_message(
        self, message: CellMessage, blobs: tuple[Blob, ...], rings: AgentConnected, now_ms: int
    ) -> CellFinished | None:
        """Take in what the agent says of this cell; return all that it comes to, once it is complete.

        Raises MalformedMessage, or MemoryError if the results do not fit into this process.
        """
        self.is_taken = True
        match message:
            case say.Took():
                self._count_taken_chunk()
            case say.Output():
                if message.seq > self.last_seq:
                    self._deliver_output(message, blobs, now_ms)
            case say.Asked():
                self._ask_user(message)
            case say.Ended():
                if self._ended is None or message.round > self._ended.round:  # else it is said twice
                    self._receiver = Receiver(message.parcel, blobs, rings.ring_in)
                    self._ended = message
                    if self.phase is not CellPhase.RETURNING:
                        self.move(CellPhase.RETURNING)
            case say.Chunk():
                is_awaited = self._ended is not None and message.round == self._ended.round
                if is_awaited and self._receiver is not None and not self._receiver.is_done:
                    self._receiver.take(message, blobs)
                    self._send_to_agent(say.Took(cell=self.cell, round=message.round), ())
            case _:
                assert_never(message)
        return self._finished()

    def _count_taken_chunk(self) -> None:
        """Send more: the other side took a chunk in. One too many is dropped: it would widen the window."""
        if self._sender is not None and self._outstanding:
            self._outstanding -= 1
            self._sender.took()
            self._send_ready_chunks()

    def _ask_user(self, asked: say.Asked) -> None:
        """Ask a question once; say again what was typed, in case it was lost with the connection."""
        if asked.number and asked.number == self._question and not self._is_asking:
            self._send_to_agent(say.Answer(cell=self.cell, text=self._answer), ())
        elif not self._is_asking or asked.number != self._question:
            self._is_asking, self._question = True, asked.number
            self._deliver(QuestionAsked(asked.prompt, asked.password))

    def _deliver_output(self, output: say.Output, blobs: tuple[Blob, ...], now_ms: int) -> None:
        self.last_seq = output.seq
        if self._acknowledge_due_ms is None:
            self._acknowledge_due_ms = now_ms + ACKNOWLEDGE_MS
        if self.last_seq - self._acknowledged_seq >= ACKNOWLEDGE_COUNT:
            self._acknowledge_due_ms = now_ms
        self._deliver(to_output_message(output, blobs))

    def _finished(self) -> CellFinished | None:
        """Return what the cell came to, where all of its results are here."""
        if self._receiver is None or not self._receiver.is_done:
            return None
        assert self._ended is not None
        assert self._lease is not None
        assert self._sent_ms is not None
        return CellFinished(
            ended=self._ended,
            parts=tuple(self._receiver.parts),
            lease=self._lease,
            waited_ms=self._sent_ms - self._submitted_ms,
            sent_bytes=sum(memoryview(part).nbytes for part in self.submitted.parts),
            returned_bytes=sum(self._ended.parcel.sizes),
        )

    @property
    def all_seen(self) -> say.Seen:
        """What tells the agent that it may forget the cell: all that it came to has been delivered."""
        return say.Seen(cell=self.cell, seq=self.last_seq, is_done=True)

    def _acknowledge(self) -> None:
        self._acknowledged_seq, self._acknowledge_due_ms = self.last_seq, None
        self._send_to_agent(say.Seen(cell=self.cell, seq=self.last_seq), ())

    # --- when the connection broke, and the agent still has the cell

    def is_state_in_doubt(self, lacks: int | None) -> bool:
        """Tell whether some of its state may be lost, where the agent `lacks` so many bytes of it, or cannot say."""
        return self.phase is CellPhase.RUNNING and self._outstanding > 0 and not self.last_seq and lacks is None

    def resume(self, *, is_stop_heard: bool = False) -> None:
        """Go on after a broken link: the agent sends the outputs that were not seen, and results from their start."""
        self.is_taken = True
        if self.phase is CellPhase.SHIPPING:  # all was sent and has arrived: what was lost is that it was taken in
            self.move(CellPhase.RUNNING)
        self._sender, self._outstanding = None, 0
        if self.phase is CellPhase.RETURNING:
            self._ended = self._receiver = None
            self.move(CellPhase.RUNNING)
        self._stop.cancel_interrupt()
        is_hard = self._stop.presses > 1
        if is_hard or (self.is_stopping and not is_stop_heard):
            self._send_to_agent(say.Stop(cell=self.cell, hard=is_hard), ())

    # --- what the user does

    def answer(self, text: str) -> None:
        """Send what the user answered to the cell's question."""
        if self.phase is CellPhase.RUNNING:
            self._is_asking, self._answer = False, text
            self._send_to_agent(say.Answer(cell=self.cell, text=text), ())

    def stop(self, now_ms: int) -> bool:
        """Interrupt the cell, or with the second press end its process. False: there is only leaving it."""
        self._stop.presses += 1
        presses = self._stop.presses
        if self.phase is CellPhase.RUNNING and presses == 1:
            self._stop.schedule_interrupt(now_ms)
            self._interrupt_if_due(now_ms)
        elif self.phase is CellPhase.RUNNING and presses == 2:
            self._stop.schedule_giving_up(now_ms)
            self._send_to_agent(say.Stop(cell=self.cell, hard=True), ())
        elif self.phase is CellPhase.RETURNING and presses == 1:
            self.note("The cell has ended and its results are on their way. Press stop again to leave them behind.")
        else:
            return self.phase is CellPhase.RUNNING and self._stop.is_ending(now_ms)
        return True

    def _interrupt_if_due(self, now_ms: int) -> None:
        # One that does not run any more has ended, and its results are on their way.
        if self._stop.pop_interrupt(now_ms) and self.phase is CellPhase.RUNNING:
            self._send_to_agent(say.Stop(cell=self.cell), ())

    @property
    def may_go_on(self) -> bool:
        """Whether the node has all that the cell needs to go on without this kernel."""
        return self.phase in {CellPhase.RUNNING, CellPhase.RETURNING}

    @property
    def kept_sentence(self) -> str:
        """What the end of the kernel means for a cell that goes on where it can, for the user."""
        if not self.may_go_on:
            return NEVER_RAN
        return (
            f"The kernel ends and the cell goes on: `%gpu attach {self.cell[:SHORT]}` in the next kernel has all of it."
        )

    @property
    def abandoned_sentence(self) -> str:
        """What leaving the cell now means for it, for the user."""
        if self.phase is CellPhase.RUNNING:
            return "The node did not answer the stop, and the cell was left; its process is ended when the node hears."
        if self.phase is CellPhase.RETURNING:
            return "The results of the cell were left behind."
        return NEVER_RAN

    # --- time, and small words

    def tick(self, now_ms: int) -> bool:
        """Do what is due. False: the node did not answer the stop, and there is only leaving the cell."""
        if self._acknowledge_due_ms is not None and self._acknowledge_due_ms <= now_ms:
            self._acknowledge()
        self._interrupt_if_due(now_ms)
        if self._stop.pop_note(now_ms) and self.phase is CellPhase.RUNNING:
            self.note(
                "The cell has not stopped yet. Press stop again to end its process; "
                "your variables then stay as before the cell."
            )
        return not (self._stop.pop_giving_up(now_ms) and self.phase is CellPhase.RUNNING)

    def note(self, text: str) -> None:
        """Tell the user, once."""
        if text not in self._said:
            self._said.add(text)
            self._deliver(UserNote(text))

    def move(self, to: CellPhase) -> None:
        """Enter a phase. Raises IllegalMove if the table does not have the move."""
        if to not in CELL_TRANSITIONS[self.phase]:
            raise IllegalMove(self.phase.name, to.name)
        self.phase = to


def to_output_message(output: say.Output, blobs: tuple[Blob, ...]) -> OutputMessage:
    """Return the Jupyter message that an output of the wire is: its first blob is the content, the rest are buffers."""
    content, *buffers = map(bytes, blobs or (b"{}",))
    return OutputMessage(output.type, content, tuple(buffers))
