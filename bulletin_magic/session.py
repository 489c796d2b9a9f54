"""The notebook's side of a session as a pure machine: facts and a time in, actions out.

It speaks to the broker (who am I, may I have a lease) and to the agent (state, cells, outputs) and tells the main
thread what comes of it. It knows no socket and no clock; `link` is its shell.
"""

from enum import Enum
from typing import assert_never

from bulletin.errors import BulletinError, CannotReturn, CellLost, CellStopped, IllegalMove, MalformedMessage, NoPool
from bulletin.errors import NotAllowed as NotAllowedError
from bulletin.errors import Refused as RefusedError
from bulletin.ids import CellId
from bulletin.wire import messages as say
from bulletin.wire.frames import Blob
from bulletin_magic.facts import (
    Action,
    AgentConnected,
    AgentSaid,
    Answered,
    Began,
    BrokerSaid,
    CellAsked,
    ConnectAgent,
    Deliver,
    Delivery,
    DropAgent,
    Event,
    Failed,
    Finished,
    Garbled,
    LeaveAsked,
    Left,
    Note,
    PictureAsked,
    Pictured,
    Printed,
    Question,
    StopPressed,
    Tick,
    ToAgent,
    ToBroker,
    Waiting,
    Where,
    Wish,
)
from bulletin_magic.trip import Trip

PING_MS, IDLE_PING_MS = 1_000, 10_000
BROKER_SILENT_MS, AGENT_SILENT_MS = 5_000, 8_000
#: An agent that was silent for so long is not pinged any more while no cell is under way.
IDLE_SILENT_MS = 60_000
GREET_MS, LOOK_MS = 10_000, 5_000
#: What may have been lost on a broken connection is said again after so long.
REPEAT_MS = 5_000
STOP_NOTE_MS, GIVE_UP_MS = 2_000, 10_000
#: Leases that come to nothing before the cell could start.
TRIES = 3


class Phase(Enum):
    """Where the cell is. IDLE: there is none."""

    IDLE, GREETING, QUEUED, ATTACHING, SHIPPING, RUNNING, RETURNING = range(7)


_UNDER_WAY = {Phase.SHIPPING, Phase.RUNNING, Phase.RETURNING}

#: The whole life of a cell. Back to ATTACHING: the agent never got it. Back to GREETING or QUEUED: it needs another
#: lease, or the broker was restarted. RETURNING to RUNNING: the link broke, the results come again from their start.
MOVES = {
    Phase.IDLE: {Phase.GREETING, Phase.QUEUED, Phase.ATTACHING, Phase.SHIPPING, Phase.RUNNING},
    Phase.GREETING: {Phase.QUEUED, Phase.IDLE},
    Phase.QUEUED: {Phase.ATTACHING, Phase.GREETING, Phase.IDLE},
    Phase.ATTACHING: {Phase.SHIPPING, Phase.RUNNING, Phase.QUEUED, Phase.GREETING, Phase.IDLE},
    Phase.SHIPPING: {Phase.RUNNING, Phase.RETURNING, Phase.ATTACHING, Phase.QUEUED, Phase.GREETING, Phase.IDLE},
    Phase.RUNNING: {Phase.RETURNING, Phase.ATTACHING, Phase.QUEUED, Phase.GREETING, Phase.IDLE},
    Phase.RETURNING: {Phase.RUNNING, Phase.IDLE},
}


class Broker(Enum):
    """How well the broker knows us."""

    STRANGE, GREETING, KNOWN = range(3)


class Session:
    """One kernel's session: at most one lease, at most one cell under way. Its shell performs the actions in order."""

    def __init__(self, hello: say.Hello, place: str) -> None:
        """`place` says to the user where the broker should be."""
        self._hello, self._place = hello, place
        self.phase = Phase.IDLE
        self._broker, self._was_welcome = Broker.STRANGE, False
        self._slot_word = "GPU"
        self._hello_ms = self._broker_ms = self._agent_ms = self._attach_ms = 0
        self._lease: say.Granted | None = None
        self._wish = Wish()
        self._rings = AgentConnected()
        self._is_connected = self._is_attached = False
        self._idle_ping_ms = 0
        self._trip: Trip | None = None
        self._look_by_ms: int | None = None
        self._now_ms = 0
        self._actions: list[Action] = []

    @property
    def where(self) -> Where | None:
        """The lease that is held."""
        if self._lease is None:
            return None
        return Where(lease=self._lease.lease, node=self._lease.node, slots=self._lease.slots, slot_word=self._slot_word)

    @property
    def deadline_ms(self) -> int | None:
        """When to send the next Tick; None is never."""
        trip = self._trip
        times = [self._look_by_ms]
        if trip is not None:
            times += [trip.ping_ms + PING_MS, trip.seen_due_ms, trip.stop_note_ms, trip.give_up_ms, trip.greet_by_ms]
        elif self._lease is not None and self._now_ms - self._agent_ms < IDLE_SILENT_MS:
            times.append(self._idle_ping_ms + IDLE_PING_MS)
        return min((time for time in times if time is not None), default=None)

    def step(self, event: Event, now_ms: int) -> list[Action]:
        """Take in one fact, say what to do. Late, early and repeated facts are harmless."""
        self._now_ms, self._actions = now_ms, []
        match event:
            case CellAsked():
                self._ask(event)
            case PictureAsked():
                self._look()
            case LeaveAsked():
                self._leave()
            case StopPressed():
                self._stop()
            case Answered(text=text):
                if self._trip is not None and self.phase is Phase.RUNNING:
                    self._trip.is_asking = False
                    self._to_agent(say.Answer(cell=self._trip.cell, text=text))
            case BrokerSaid(message=message):
                self._broker_ms = now_ms
                self._from_broker(message)
                if self._trip is not None:
                    self._trip.heard_broker = True
            case AgentConnected():
                if self._lease is not None and not self._is_connected:
                    self._rings, self._is_connected = event, True
                    self._attach()
            case AgentSaid(message=message, blobs=blobs):
                self._agent_ms = now_ms
                self._from_agent(message, blobs)
            case Garbled(who=who, problem=problem):
                self._garbled(who, problem)
            case Tick():
                pass
            case _:
                assert_never(event)
        self._overdue()
        actions, self._actions = self._actions, []  # not kept: they hold the cell's state
        return actions

    # --- what the user wants ----------------------------------------------------------------------------------------

    def _ask(self, asked: CellAsked) -> None:
        if self._trip is not None:
            raise IllegalMove(self.phase.name, "CellAsked")
        self._trip = Trip(asked, self._now_ms)
        self._broker_ms = self._agent_ms = self._now_ms
        if self._lease is not None and not self._suits(asked.wish, self._lease):
            self._give_back()
        if self._lease is None:
            self._submit(self._trip)
        elif self._is_attached:
            self._ship(self._trip)
        else:
            self._move(Phase.ATTACHING)

    def _suits(self, wish: Wish, lease: say.Granted) -> bool:
        had = self._wish
        is_long_enough = wish.walltime_ms is None or wish.walltime_ms <= lease.walltime_ms
        same = (wish.gpus, wish.qos, wish.project, wish.environment) == (
            had.gpus,
            had.qos,
            had.project,
            had.environment,
        )
        return same and is_long_enough

    def _look(self) -> None:
        self._look_by_ms = self._now_ms + LOOK_MS
        if self._broker is Broker.KNOWN:
            self._to_broker(say.Look())
        elif self._broker is Broker.STRANGE:
            self._greet()

    def _leave(self) -> None:
        where = self.where
        if self._trip is not None and self.phase is Phase.QUEUED:
            self._to_broker(say.Withdraw(request=self._trip.request))
        self._give_back()
        self._end_trip()
        self._deliver(Left(where))

    def _stop(self) -> None:
        trip = self._trip
        if trip is None:
            return
        trip.stops += 1
        if self.phase is Phase.RUNNING and trip.stops == 1:
            trip.stop_note_ms = self._now_ms + STOP_NOTE_MS
            self._to_agent(say.Stop(cell=trip.cell))
        elif self.phase is Phase.RUNNING and trip.stops == 2:
            trip.stop_note_ms, trip.give_up_ms = None, self._now_ms + GIVE_UP_MS
            self._to_agent(say.Stop(cell=trip.cell, hard=True))
        elif self.phase is Phase.RETURNING and trip.stops == 1:
            self._note("The cell has ended and its results are on their way. Press stop again to leave them behind.")
        else:
            if self.phase is Phase.QUEUED:
                self._to_broker(say.Withdraw(request=trip.request))
            self._give_back()
            self._fail(CellStopped(_STOPPED.get(self.phase, "The cell was stopped before it ran.")))

    # --- the broker -------------------------------------------------------------------------------------------------

    def _greet(self) -> None:
        self._broker, self._hello_ms = Broker.GREETING, self._now_ms
        self._to_broker(self._hello)

    def _submit(self, trip: Trip) -> None:
        if self._broker is Broker.KNOWN:
            self._move(Phase.QUEUED)
            self._send_submit(trip)
            return
        self._move(Phase.GREETING)
        if not self._was_welcome:
            trip.greet_by_ms = self._now_ms + GREET_MS
        if self._broker is Broker.STRANGE:
            self._greet()

    def _send_submit(self, trip: Trip) -> None:
        wish = trip.asked.wish
        trip.queue_heard_ms = self._now_ms
        self._to_broker(
            say.Submit(
                request=trip.request,
                qos=wish.qos,
                gpus=wish.gpus,
                walltime_ms=wish.walltime_ms,
                project=wish.project,
                environment=wish.environment,
                label=wish.label,
            )
        )

    def _from_broker(self, message: say.ToKernel) -> None:
        trip = self._trip
        match message:
            case say.Welcome():
                self._welcome(message)
            case say.Refused(request=None):
                self._broker = Broker.STRANGE
                self._refused_all(message)
            case say.Refused():
                if trip is not None and self.phase is Phase.QUEUED and message.request == trip.request:
                    self._fail(RefusedError(message.sentence))
            case say.Queued():
                if trip is not None and self.phase is Phase.QUEUED and message.request == trip.request:
                    trip.queue_heard_ms = self._now_ms
                    self._deliver(
                        Waiting(
                            position=message.position,
                            reason=message.reason,
                            wait_ms=message.wait_ms,
                            in_quota=message.in_quota,
                            gpus=trip.asked.wish.gpus,
                            slot_word=self._slot_word,
                        )
                    )
            case say.Granted():
                if trip is not None and self.phase is Phase.QUEUED and message.request == trip.request:
                    self._lease, self._wish = message, trip.asked.wish
                    self._is_connected = self._is_attached = False
                    self._agent_ms = self._attach_ms = self._now_ms
                    self._move(Phase.ATTACHING)
                    self._actions.append(ConnectAgent(message.agent, message.ticket))
            case say.Revoked():
                if self._lease is not None and message.lease == self._lease.lease:
                    self._revoked(message.sentence)
            case say.Picture():
                if self._look_by_ms is not None:
                    self._look_by_ms = None
                    self._deliver(Pictured(picture=message, where=self.where))
            case say.Unknown():
                self._forgotten_by_broker()
            case say.Malformed(problem=problem):
                self._garbled("broker", f"it could not read this kernel's message: {problem}")
            case say.Pong():
                pass
            case _:
                assert_never(message)

    def _welcome(self, welcome: say.Welcome) -> None:
        self._broker, self._was_welcome, self._slot_word = Broker.KNOWN, True, welcome.slot_word
        if self._look_by_ms is not None:
            self._to_broker(say.Look())
        trip = self._trip
        if trip is None:
            return
        trip.greet_by_ms = None
        if self.phase is Phase.GREETING:
            self._move(Phase.QUEUED)
            self._send_submit(trip)
        if trip.broker_restarted:
            trip.broker_restarted = False
            what = "is queued again" if self.phase is Phase.QUEUED else "goes on"
            if trip.first(what):
                self._note(f"The pool's broker was restarted; your cell {what}.")

    def _forgotten_by_broker(self) -> None:
        if self._broker is Broker.GREETING and self._now_ms - self._hello_ms < PING_MS:
            return  # an answer to what was sent before the Hello
        if self._trip is not None:
            if self._broker is Broker.KNOWN and self._trip.heard_broker:
                self._trip.broker_restarted = True
            if self.phase is Phase.QUEUED:
                self._move(Phase.GREETING)
        self._greet()

    def _refused_all(self, refused: say.Refused) -> None:
        error: BulletinError = RefusedError(refused.sentence)
        if refused.code == NotAllowedError.code:
            error = NotAllowedError(refused.sentence)
        if self._trip is not None and self.phase in {Phase.GREETING, Phase.QUEUED}:
            self._fail(error)
        elif self._trip is not None:
            if self._trip.first("refused"):
                self._note(f"The pool's broker says: {refused.sentence} Your cell goes on.")
        elif self._look_by_ms is not None:
            self._look_by_ms = None
            self._deliver(Failed(error))

    def _revoked(self, sentence: str) -> None:
        if self._trip is not None and self.phase is Phase.RETURNING:
            self._trip.revoked = sentence  # the agent may still be sending; _pulse gives up when it falls silent
        else:
            self._lease_over(sentence)

    # --- the agent --------------------------------------------------------------------------------------------------

    def _attach(self) -> None:
        """Show the ticket. After a broken link also: which cell is ours, and what of it arrived."""
        if self._lease is None or not self._is_connected:
            return
        self._is_attached, self._attach_ms = False, self._now_ms
        trip = self._trip if self._trip is not None and self._trip.is_shipped else None
        self._to_agent(
            say.Attach(
                protocol=say.PROTOCOL,
                lease=self._lease.lease,
                ticket=self._lease.ticket,
                cell=trip.cell if trip else None,
                seen=trip.seen if trip else 0,
            )
        )

    def _ship(self, trip: Trip) -> None:
        run, blobs = trip.ship(self._rings.ring_out, self._now_ms)
        self._to_agent(run, blobs)
        where = self.where
        assert where is not None
        self._deliver(Began(where))
        self._move(Phase.SHIPPING if trip.sender is not None else Phase.RUNNING)
        if trip.sender is not None:
            self._pour(trip)

    def _pour(self, trip: Trip) -> None:
        for chunk, pieces in trip.chunks():
            self._to_agent(chunk, tuple(pieces))
        if trip.is_out:
            self._move(Phase.RUNNING)

    def _from_agent(self, message: say.AgentToKernel, blobs: tuple[Blob, ...]) -> None:
        match message:
            case say.Attached(lease=lease, cell=cell):
                if self._lease is not None and lease == self._lease.lease and not self._is_attached:
                    self._is_attached, self._idle_ping_ms = True, self._now_ms
                    self._attached(cell)
            case say.Unknown():
                if self._is_attached or self._now_ms - self._attach_ms >= PING_MS:
                    self._attach()
            case say.Gone(sentence=sentence):
                self._lease_over(sentence)
            case say.Lost(cell=cell, sentence=sentence):
                is_ours = self._trip is not None and self._trip.cell == cell and self.phase in _UNDER_WAY
                self._lease_over(sentence, is_cell_lost=is_ours)
            case say.Refused(sentence=sentence):
                self._drop()
                if self._trip is not None:
                    self._fail(RefusedError(sentence))
            case say.Malformed(problem=problem):
                self._garbled("agent", f"it could not read this kernel's message: {problem}")
            case say.Pong():
                self._taken()
            case say.Chunk() | say.Took() | say.Output() | say.Asked() | say.Ended():
                if self._trip is not None and message.cell == self._trip.cell and self.phase in _UNDER_WAY:
                    self._taken()
                    self._of_cell(self._trip, message, blobs)
            case _:
                assert_never(message)

    def _taken(self) -> None:
        if self._trip is not None and self._is_attached and self.phase in _UNDER_WAY:
            self._trip.is_taken = True

    def _attached(self, cell: CellId | None) -> None:
        trip = self._trip
        if trip is None:
            return
        if self.phase is Phase.ATTACHING:
            self._ship(trip)
        elif self.phase not in _UNDER_WAY:
            return
        elif cell != trip.cell and not trip.is_taken:
            self._move(Phase.ATTACHING)
            self._ship(trip)
        elif cell != trip.cell:
            self._give_back()
            self._fail(CellLost("The node of your cell was restarted and lost it."))
        elif self.phase is Phase.SHIPPING:
            self._give_back()  # some chunks may be lost, and nobody can say which; the cell cannot have begun
            self._again("The connection to the node broke while your variables were sent.")
        elif self.phase is Phase.RUNNING and trip.outstanding and not trip.seen:
            self._give_back()
            self._fail(CellLost("The connection to the node broke while your variables were sent."))
        else:
            trip.is_taken = True
            if self.phase is Phase.RETURNING:
                trip.forget_end()
                self._move(Phase.RUNNING)
            if trip.stops > 1:
                self._to_agent(say.Stop(cell=trip.cell, hard=True))

    def _of_cell(
        self, trip: Trip, message: say.Chunk | say.Took | say.Output | say.Asked | say.Ended, blobs: tuple[Blob, ...]
    ) -> None:
        match message:
            case say.Took():
                trip.took()
                if self.phase is Phase.SHIPPING:
                    self._pour(trip)
            case say.Output():
                if trip.is_news(message, self._now_ms):
                    self._deliver(Printed(message.type, bytes(blobs[0]) if blobs else b"{}"))
            case say.Asked():
                if not trip.is_asking:
                    trip.is_asking = True
                    self._deliver(Question(message.prompt, message.password))
            case say.Ended() | say.Chunk():
                try:
                    self._take(trip, message, blobs)
                except MalformedMessage as error:
                    self._garbled("agent", error.problem)
                except MemoryError:
                    self._give_back()
                    self._fail(CannotReturn("", "the notebook's memory is too small for it."))
            case _:
                assert_never(message)

    def _take(self, trip: Trip, message: say.Ended | say.Chunk, blobs: tuple[Blob, ...]) -> None:
        if isinstance(message, say.Ended):
            if trip.ended is not None:
                return
            trip.end(message, blobs, self._rings.ring_in)
            self._move(Phase.RETURNING)
        elif trip.receiver is not None and not trip.receiver.is_done:
            trip.receiver.take(message, blobs)
            self._to_agent(say.Took(cell=trip.cell))
        if trip.receiver is not None and trip.receiver.is_done:
            self._finish(trip)

    def _finish(self, trip: Trip) -> None:
        assert trip.ended is not None
        assert trip.receiver is not None
        assert trip.shipped_ms is not None
        where = self.where
        assert where is not None
        self._deliver(
            Finished(
                ended=trip.ended,
                parts=tuple(trip.receiver.parts),
                where=where,
                waited_ms=trip.shipped_ms - trip.asked_ms,
                sent_bytes=trip.sent_bytes,
                returned_bytes=trip.returned_bytes,
            )
        )
        self._to_agent(say.Seen(cell=trip.cell, seq=trip.seen))
        self._idle_ping_ms = self._now_ms
        if trip.revoked:
            self._drop()
        self._end_trip()

    # --- ends -------------------------------------------------------------------------------------------------------

    def _lease_over(self, sentence: str, *, is_cell_lost: bool = False) -> None:
        """The lease is no more, and not because we gave it back. A cell that did not start finds another."""
        if self._lease is None:
            return
        self._drop()
        if self._trip is None:
            return
        if self.phase is Phase.ATTACHING or not (self._trip.is_taken or is_cell_lost):
            self._again(sentence)
        else:
            self._fail(CellLost(sentence))

    def _again(self, sentence: str) -> None:
        trip = self._trip
        assert trip is not None
        if trip.tries == TRIES:
            self._fail(CellLost(sentence))
        elif trip.stops:
            self._fail(CellStopped("The cell was stopped before it ran."))
        else:
            trip.again()
            self._submit(trip)

    def _garbled(self, who: str, problem: str) -> None:
        """One of the two sides is broken or of another version: no point in going on with it."""
        if who == "agent":
            self._give_back()
        if self._trip is not None and self.phase in _UNDER_WAY and who == "agent":
            self._fail(CellLost(f"The node of your cell and this notebook do not understand each other ({problem})."))
        elif self._trip is not None and (who == "agent" or self.phase in {Phase.GREETING, Phase.QUEUED}):
            self._fail(MalformedMessage(problem))
        elif self._trip is None and self._look_by_ms is not None:
            self._look_by_ms = None
            self._deliver(Failed(MalformedMessage(problem)))

    def _give_back(self) -> None:
        if self._lease is not None:
            if self._is_connected:
                self._to_agent(say.Leave())
            self._drop()

    def _drop(self) -> None:
        if self._lease is not None:
            self._lease, self._is_connected, self._is_attached = None, False, False
            self._rings = AgentConnected()
            self._actions.append(DropAgent())

    def _fail(self, error: BulletinError) -> None:
        self._deliver(Failed(error))
        self._end_trip()

    def _end_trip(self) -> None:
        if self._trip is not None:
            self._trip = None
            self._move(Phase.IDLE)

    # --- time -------------------------------------------------------------------------------------------------------

    def _overdue(self) -> None:
        now, trip = self._now_ms, self._trip
        if self._look_by_ms is not None and self._look_by_ms <= now:
            self._look_by_ms = None
            self._deliver(Failed(self._no_answer()))
        if trip is None:
            if self._lease is not None and self._idle_ping_ms + IDLE_PING_MS <= now:
                self._idle_ping_ms = now
                if self._is_connected and now - self._agent_ms < IDLE_SILENT_MS:
                    self._to_agent(say.Ping())
            return
        if trip.seen_due_ms is not None and trip.seen_due_ms <= now:
            trip.acknowledged()
            self._to_agent(say.Seen(cell=trip.cell, seq=trip.seen))
        if trip.stop_note_ms is not None and trip.stop_note_ms <= now:
            trip.stop_note_ms = None
            if self.phase is Phase.RUNNING:
                self._note(
                    "The cell has not stopped yet. Press stop again to end its process; "
                    "your variables then stay as before the cell."
                )
        if trip.greet_by_ms is not None and trip.greet_by_ms <= now:
            self._broker = Broker.STRANGE
            self._fail(self._no_answer())
        elif trip.give_up_ms is not None and trip.give_up_ms <= now and self.phase is Phase.RUNNING:
            self._give_back()
            self._fail(CellStopped(_STOPPED[Phase.RUNNING]))
        elif trip.ping_ms + PING_MS <= now:
            trip.ping_ms = now
            self._pulse(trip)

    def _pulse(self, trip: Trip) -> None:
        """Ask both whether they are there. Once a second while a cell is under way."""
        now = self._now_ms
        if self._broker is Broker.KNOWN:
            self._to_broker(say.Ping())
            if self.phase is Phase.QUEUED and now - trip.queue_heard_ms >= REPEAT_MS:
                self._send_submit(trip)
        elif self._broker is Broker.STRANGE or now - self._hello_ms >= REPEAT_MS:
            self._greet()
        if now - self._broker_ms >= BROKER_SILENT_MS and self._was_welcome and trip.first("broker"):
            what = "waits until it does" if self.phase in {Phase.GREETING, Phase.QUEUED} else "goes on"
            self._note(f"The pool's broker does not answer; your cell {what}.")
        if not self._is_connected:
            return
        self._to_agent(say.Ping())
        if not self._is_attached and now - self._attach_ms >= REPEAT_MS:
            self._attach()
        if now - self._agent_ms >= AGENT_SILENT_MS:
            if trip.revoked:
                self._lease_over(trip.revoked)
            elif trip.first("agent"):
                self._note("The node of your cell does not answer; waiting for it. Press stop to leave it.")

    # --- small words ------------------------------------------------------------------------------------------------

    def _no_answer(self) -> NoPool:
        return NoPool(
            f"The GPU pool {self._place} does not answer.", "Try again in a minute, or ask who runs the pool."
        )

    def _to_broker(self, message: say.FromKernel) -> None:
        self._actions.append(ToBroker(message))

    def _to_agent(self, message: say.KernelToAgent, blobs: tuple[Blob, ...] = ()) -> None:
        self._actions.append(ToAgent(message, blobs))

    def _deliver(self, delivery: Delivery) -> None:
        self._actions.append(Deliver(delivery))

    def _note(self, text: str) -> None:
        self._deliver(Note(text))

    def _move(self, to: Phase) -> None:
        if to not in MOVES[self.phase]:
            raise IllegalMove(self.phase.name, to.name)
        self.phase = to


#: How a cell was stopped, by where it was.
_STOPPED = {
    Phase.RUNNING: "The node did not answer the stop, and the cell was left; its process is ended when the node hears.",
    Phase.RETURNING: "The results of the cell were left behind.",
}
