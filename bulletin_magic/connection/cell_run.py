"""One cell's way to its node and back: its state goes out, its outputs come in, it is stopped, its results return."""

from collections.abc import Callable
from enum import Enum
from typing import assert_never

from bulletin.errors import IllegalMove
from bulletin.ids import RequestId
from bulletin.wire import messages as say
from bulletin.wire.blobs import Receiver, Sender, describe
from bulletin.wire.frames import Blob
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

#: Outputs are acknowledged after so many, or after so long.
SEEN_COUNT, SEEN_MS = 64, 100
STOP_NOTE_MS, GIVE_UP_MS = 2_000, 10_000
#: As many characters of a cell's name as tell it from others.
SHORT = 8
NEVER_RAN = "The cell was stopped before it ran."

#: What an agent says about one cell.
CellMessage = say.Chunk | say.Took | say.Output | say.Asked | say.Ended


class CellPhase(Enum):
    """Where a cell is."""

    QUEUED, ATTACHING, SHIPPING, RUNNING, RETURNING = range(5)


#: The whole life of a cell; it may end in each phase. Back to ATTACHING: the agent never got it. Back to QUEUED: it
#: needs another lease: the one before came to nothing, or was reclaimed. RETURNING to RUNNING: the link broke, and
#: the results come again from their start.
MOVES = {
    CellPhase.QUEUED: {CellPhase.ATTACHING},
    CellPhase.ATTACHING: {CellPhase.SHIPPING, CellPhase.RUNNING, CellPhase.QUEUED},
    CellPhase.SHIPPING: {CellPhase.RUNNING, CellPhase.RETURNING, CellPhase.ATTACHING, CellPhase.QUEUED},
    CellPhase.RUNNING: {CellPhase.RETURNING, CellPhase.ATTACHING, CellPhase.QUEUED},
    CellPhase.RETURNING: {CellPhase.RUNNING, CellPhase.QUEUED},
}


class CellRun:
    """A cell under way. Everything here ends with the cell. The session owns it and finds it a lease."""

    def __init__(
        self,
        asked: CellSubmitted,
        phase: CellPhase,
        now_ms: int,
        to_agent: Callable[[say.KernelToAgent, tuple[Blob, ...]], None],
        deliver: Callable[[Delivery], None],
    ) -> None:
        """It begins QUEUED, or ATTACHING where there is a lease."""
        self.asked, self.cell = asked, asked.cell
        self.phase = phase
        self._to_agent, self._deliver = to_agent, deliver
        self.tries, self._asked_ms = 1, now_ms
        self.reclaims = 0
        self._shipped_ms: int | None = None
        self._lease: LeaseInfo | None = None
        #: The agent is known to have taken the Run in.
        self.is_taken = False
        self._sender: Sender | None = None
        #: Chunks that were sent and not yet taken in.
        self._outstanding = 0
        #: The last output that arrived.
        self.seen = self._acknowledged = 0
        self._seen_due_ms: int | None = None
        self._is_asking = False
        #: The number of the question that is asked, or was asked last, and what was typed.
        self._question, self._answer = 0, ""
        self._ended: say.Ended | None = None
        self._receiver: Receiver | None = None
        self.stops = 0
        self._stop_due_ms: int | None = None
        self._stop_note_ms: int | None = None
        self._give_up_ms: int | None = None
        #: Why the lease is over, if the broker said so while results were coming in.
        self.revoked = ""
        self._said: set[str] = set()

    @property
    def is_under_way(self) -> bool:
        """Whether the agent has it, or soon will."""
        return self.phase not in {CellPhase.QUEUED, CellPhase.ATTACHING}

    @property
    def is_shipped(self) -> bool:
        """The Run has been sent to the lease of now."""
        return self._shipped_ms is not None

    @property
    def deadline_ms(self) -> int | None:
        """When `tick` has something to do."""
        dues = (self._seen_due_ms, self._stop_due_ms, self._stop_note_ms, self._give_up_ms, self._wait_until_ms)
        return min((due for due in dues if due is not None), default=None)

    @property
    def _wait_until_ms(self) -> int | None:
        """When it has waited for as long as it may. A cell that has run, and is to run again, waits on."""
        is_waiting = self.phase is CellPhase.QUEUED and self.reclaims == 0
        return self._asked_ms + self.asked.max_wait_ms if is_waiting and self.asked.max_wait_ms is not None else None

    def has_waited_too_long(self, now_ms: int) -> bool:
        """Whether it is time to leave the queue."""
        return self._wait_until_ms is not None and self._wait_until_ms <= now_ms

    # --- out

    def submit(self) -> say.Submit | say.Join:
        """The request for a lease. Each try is a request of its own."""
        resources, request = self.asked.resources, self.asked.request
        if self.tries > 1:
            request = RequestId(f"{request}-{self.tries}")
        if self.asked.joins is not None:
            return say.Join(request=request, cell=self.cell, agent=self.asked.joins)
        return say.Submit(
            request=request,
            qos=resources.qos,
            gpus=resources.gpus,
            walltime_ms=resources.walltime_ms,
            project=resources.project,
            environment=resources.environment,
            label=resources.label,
            gpu_type=resources.gpu_type,
            gpu_memory_bytes=resources.gpu_memory_bytes,
            cpus=resources.cpus,
            memory_bytes=resources.memory_bytes,
        )

    def is_of(self, request: RequestId | None) -> bool:
        """Whether this is one of its requests."""
        own = self.asked.request
        return request is not None and (request == own or request.startswith(f"{own}-"))

    def waited_ms(self, now_ms: int) -> int:
        """For how long it has been asking for a lease."""
        return now_ms - self._asked_ms

    def again(self) -> None:
        """The lease came to nothing before the cell ran: it needs another."""
        self.tries += 1
        self._shipped_ms, self._sender, self._outstanding, self.is_taken = None, None, 0, False
        if self.phase is not CellPhase.QUEUED:
            self.move(CellPhase.QUEUED)

    def from_the_beginning(self) -> None:
        """Its lease was reclaimed while it ran: it needs another, and is another run of the cell."""
        self.reclaims += 1
        self.again()
        self.seen = self._acknowledged = 0
        self._seen_due_ms = self._ended = self._receiver = None
        self._is_asking, self._question = False, 0

    def join(self, lease: LeaseInfo, now_ms: int) -> None:
        """The agent has it, and tells what it has said so far."""
        self._shipped_ms, self._lease, self.is_taken = now_ms, lease, True
        self._deliver(CellSent(lease))
        self.move(CellPhase.RUNNING)

    def ship(self, lease: LeaseInfo, rings: AgentConnected, now_ms: int) -> None:
        """Send the cell, and as much of its state as may go at once. Also when the agent never got it."""
        if self.phase is not CellPhase.ATTACHING:
            self.move(CellPhase.ATTACHING)
        parts, ring_out = self.asked.parts, rings.ring_out
        parcel = describe(parts)
        self._sender = None if parcel.inline else Sender(self.cell, parts, ring_out)
        self._shipped_ms, self._lease, self._outstanding, self.is_taken = now_ms, lease, 0, False
        run = say.Run(
            cell=self.cell,
            source=self.asked.source,
            number=self.asked.number,
            parcel=parcel,
            has_rings=ring_out is not None,
            silent=self.asked.is_call,
            request=self.asked.message,
            is_whole=self.asked.is_whole,
            outlives_kernel=self.asked.outlives_kernel,
        )
        self._to_agent(run, parts if parcel.inline else ())
        self._deliver(CellSent(lease))
        self.move(CellPhase.RUNNING if self._sender is None else CellPhase.SHIPPING)
        self._pour()

    def _pour(self) -> None:
        if self._sender is None or self.phase is not CellPhase.SHIPPING:
            return
        for chunk, pieces in self._sender.ready():
            self._outstanding += 1
            self._to_agent(chunk, tuple(pieces))
        if self._sender.is_done:
            self.move(CellPhase.RUNNING)

    # --- back

    def hear(
        self, message: CellMessage, blobs: tuple[Blob, ...], rings: AgentConnected, now_ms: int
    ) -> CellFinished | None:
        """Take in what the agent says of this cell; all that it comes to, once it is complete.

        Raises MalformedMessage, or MemoryError if the results do not fit into this process.
        """
        self.is_taken = True
        match message:
            case say.Took():
                self._took()
            case say.Output():
                if message.seq > self.seen:
                    self._show(message, blobs, now_ms)
            case say.Asked():
                self._ask(message)
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
                    self._to_agent(say.Took(cell=self.cell, round=message.round), ())
            case _:
                assert_never(message)
        return self._finished()

    def _took(self) -> None:
        """The other side took a chunk in. One too many is dropped: it would widen the window."""
        if self._sender is not None and self._outstanding:
            self._outstanding -= 1
            self._sender.took()
            self._pour()

    def _ask(self, asked: say.Asked) -> None:
        """A question is asked once; what was typed is said again, in case it was lost with the connection."""
        if asked.number and asked.number == self._question and not self._is_asking:
            self._to_agent(say.Answer(cell=self.cell, text=self._answer), ())
        elif not self._is_asking or asked.number != self._question:
            self._is_asking, self._question = True, asked.number
            self._deliver(QuestionAsked(asked.prompt, asked.password))

    def _show(self, output: say.Output, blobs: tuple[Blob, ...], now_ms: int) -> None:
        self.seen = output.seq
        if self._seen_due_ms is None:
            self._seen_due_ms = now_ms + SEEN_MS
        if self.seen - self._acknowledged >= SEEN_COUNT:
            self._seen_due_ms = now_ms
        self._deliver(printed(output, blobs))

    def _finished(self) -> CellFinished | None:
        if self._receiver is None or not self._receiver.is_done:
            return None
        assert self._ended is not None
        assert self._lease is not None
        assert self._shipped_ms is not None
        return CellFinished(
            ended=self._ended,
            parts=tuple(self._receiver.parts),
            lease=self._lease,
            waited_ms=self._shipped_ms - self._asked_ms,
            sent_bytes=sum(memoryview(part).nbytes for part in self.asked.parts),
            returned_bytes=sum(self._ended.parcel.sizes),
        )

    def done(self) -> None:
        """All that it came to has been delivered: the agent may forget it."""
        self._acknowledge(is_done=True)

    def _acknowledge(self, *, is_done: bool = False) -> None:
        self._acknowledged, self._seen_due_ms = self.seen, None
        self._to_agent(say.Seen(cell=self.cell, seq=self.seen, is_done=is_done), ())

    # --- when the connection broke, and the agent still has the cell

    def is_state_in_doubt(self, lacks: int | None) -> bool:
        """Whether some of its state may be lost, where the agent `lacks` so many bytes of it, or cannot say."""
        return self.phase is CellPhase.RUNNING and self._outstanding > 0 and not self.seen and lacks is None

    def resume(self, *, is_stop_heard: bool = False) -> None:
        """The agent sends the outputs that were not seen, and results from their start."""
        self.is_taken = True
        if (
            self.phase is CellPhase.SHIPPING
        ):  # all of it was sent, and has arrived: what was lost is that it was taken in
            self.move(CellPhase.RUNNING)
        self._sender, self._outstanding = None, 0
        if self.phase is CellPhase.RETURNING:
            self._ended = self._receiver = None
            self.move(CellPhase.RUNNING)
        self._stop_due_ms = None
        if self.stops > 1 or (self.stops and not is_stop_heard):
            self._to_agent(say.Stop(cell=self.cell, hard=self.stops > 1), ())

    # --- what the user does

    def answer(self, text: str) -> None:
        """The user answered the cell's question."""
        if self.phase is CellPhase.RUNNING:
            self._is_asking, self._answer = False, text
            self._to_agent(say.Answer(cell=self.cell, text=text), ())

    def stop(self, now_ms: int) -> bool:
        """The stop button: an interrupt, then the end of the process. False: there is only leaving it."""
        self.stops += 1
        if self.phase is CellPhase.RUNNING and self.stops == 1:
            self._stop_due_ms = now_ms + self.asked.stop_after_ms
            self._stop_note_ms = self._stop_due_ms + STOP_NOTE_MS
            self._interrupt_if_due(now_ms)
        elif self.phase is CellPhase.RUNNING and self.stops == 2:
            self._stop_due_ms = self._stop_note_ms = None
            self._give_up_ms = now_ms + GIVE_UP_MS
            self._to_agent(say.Stop(cell=self.cell, hard=True), ())
        elif self.phase is CellPhase.RETURNING and self.stops == 1:
            self.note("The cell has ended and its results are on their way. Press stop again to leave them behind.")
        else:
            return False
        return True

    def _interrupt_if_due(self, now_ms: int) -> None:
        if self._stop_due_ms is not None and self._stop_due_ms <= now_ms:
            self._stop_due_ms = None
            if self.phase is CellPhase.RUNNING:  # else it has ended, and its results are on their way
                self._to_agent(say.Stop(cell=self.cell), ())

    @property
    def may_go_on(self) -> bool:
        """Whether the node has all that the cell needs to go on without this kernel."""
        return self.phase in {CellPhase.RUNNING, CellPhase.RETURNING}

    @property
    def how_kept(self) -> str:
        """What the end of the kernel means for a cell that goes on where it can, for the user."""
        if not self.may_go_on:
            return NEVER_RAN
        return (
            f"The kernel ends and the cell goes on: `%gpu attach {self.cell[:SHORT]}` in the next kernel has all of it."
        )

    @property
    def how_left(self) -> str:
        """What leaving the cell now means for it, for the user."""
        if self.phase is CellPhase.RUNNING:
            return "The node did not answer the stop, and the cell was left; its process is ended when the node hears."
        if self.phase is CellPhase.RETURNING:
            return "The results of the cell were left behind."
        return NEVER_RAN

    # --- time, and small words

    def tick(self, now_ms: int) -> bool:
        """Do what is due. False: the node did not answer the stop, and there is only leaving the cell."""
        if self._seen_due_ms is not None and self._seen_due_ms <= now_ms:
            self._acknowledge()
        self._interrupt_if_due(now_ms)
        if self._stop_note_ms is not None and self._stop_note_ms <= now_ms:
            self._stop_note_ms = None
            if self.phase is CellPhase.RUNNING:
                self.note(
                    "The cell has not stopped yet. Press stop again to end its process; "
                    "your variables then stay as before the cell."
                )
        is_given_up = self._give_up_ms is not None and self._give_up_ms <= now_ms
        if is_given_up:
            self._give_up_ms = None
        return not (is_given_up and self.phase is CellPhase.RUNNING)

    def note(self, text: str) -> None:
        """Tell the user, once."""
        if text not in self._said:
            self._said.add(text)
            self._deliver(UserNote(text))

    def move(self, to: CellPhase) -> None:
        """The next phase. Raises IllegalMove if the table does not have it."""
        if to not in MOVES[self.phase]:
            raise IllegalMove(self.phase.name, to.name)
        self.phase = to


def printed(output: say.Output, blobs: tuple[Blob, ...]) -> OutputMessage:
    """The Jupyter message that an output is."""
    content, *buffers = map(bytes, blobs or (b"{}",))
    return OutputMessage(output.type, content, tuple(buffers))
