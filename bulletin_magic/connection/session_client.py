"""The notebook's side of a session as a pure machine: facts and a time in, actions out.

It joins the conversation with the broker (may I have a lease) and with the agent (the lease, its connection) to the
trip of one cell, and tells the main thread what comes of it. It knows no socket and no clock; `link` is its shell.
"""

from typing import assert_never

from bulletin.errors import (
    BulletinError,
    CannotReturn,
    CellLost,
    CellStopped,
    IllegalMove,
    MalformedMessage,
    Refused as RefusedError,
    WaitedTooLong,
)
from bulletin.units import show_duration
from bulletin.wire import messages as say
from bulletin.wire.frames import Blob
from bulletin_magic.connection.agent_side import AgentSide
from bulletin_magic.connection.broker_side import BrokerSide, News
from bulletin_magic.connection.cell_run import NEVER_RAN, OfCell, Phase, Trip
from bulletin_magic.connection.session_events import (
    Action,
    AgentConnected,
    AgentSaid,
    Answered,
    BrokerSaid,
    CellAsked,
    CellsAsked,
    CellsFound,
    Deliver,
    Delivery,
    Event,
    Failed,
    Garbled,
    LeaveAsked,
    Left,
    Moved,
    PictureAsked,
    Pictured,
    StopPressed,
    Tick,
    Where,
)

PING_MS, TRIES = 1_000, 3
_BROKE = "The connection to the node broke while your variables were sent."


class Session:
    """One kernel's session: at most one lease, at most one cell under way. Its shell performs the actions in order."""

    def __init__(self, hello: say.Hello, place: str) -> None:
        """`place` says to the user where the broker should be."""
        self._broker = BrokerSide(hello, place, self._act, self._note)
        self._agent = AgentSide(self._act)
        self._trip: Trip | None = None
        self._ping_ms = self._now_ms = 0
        self._actions: list[Action] = []

    @property
    def phase(self) -> Phase | None:
        """Where the cell is, if there is one."""
        return self._trip.phase if self._trip is not None else None

    @property
    def where(self) -> Where | None:
        """The lease that is held."""
        return self._agent.where(self._broker.slot_word)

    @property
    def deadline_ms(self) -> int | None:
        """When to send the next Tick; None is never."""
        dues = [self._broker.deadline_ms]
        dues += [self._agent.deadline_ms] if self._trip is None else [self._trip.deadline_ms, self._ping_ms + PING_MS]
        return min((due for due in dues if due is not None), default=None)

    def step(self, event: Event, now_ms: int) -> list[Action]:
        """Take in one fact, say what to do. Late, early and repeated facts are harmless."""
        self._now_ms, self._actions = now_ms, []
        match event:
            case CellAsked():
                self._ask(event)
            case PictureAsked():
                self._broker.look(now_ms)
            case CellsAsked():
                self._broker.look(now_ms, say.Find())
            case LeaveAsked(keeps_cell=keeps_cell):
                self._leave(keeps_cell=keeps_cell)
            case StopPressed():
                if self._trip is not None and not self._trip.stop(now_ms):
                    self._abandon(self._trip)
            case Answered(text=text):
                if self._trip is not None:
                    self._trip.answer(text)
            case BrokerSaid(message=message):
                self._take_news(self._broker.hear(message, now_ms))
            case AgentConnected():
                self._agent.connected(event, self._trip, now_ms)
            case AgentSaid(message=message, blobs=blobs):
                self._agent.heard(now_ms)
                self._from_agent(message, blobs)
            case Garbled(who="broker", problem=problem):
                self._take_news(self._broker.garbled(problem))
            case Garbled(problem=problem):
                self._garbled_by_agent(problem)
            case Tick():
                pass
            case _:
                assert_never(event)
        self._tick()
        actions, self._actions = self._actions, []  # not kept: they hold the cell's state
        return actions

    # --- what the user wants

    def _ask(self, asked: CellAsked) -> None:
        if self._trip is not None:
            raise IllegalMove(self._trip.phase.name, "CellAsked")
        if asked.joins or not self._agent.fits(asked.wish):
            self._agent.leave()
        self._broker.cell_began(self._now_ms)
        self._agent.heard(self._now_ms)
        self._ping_ms = self._now_ms
        phase = Phase.ATTACHING if self._agent.has_lease else Phase.QUEUED
        self._trip = Trip(asked, phase, self._now_ms, self._agent.say, self._deliver)
        if phase is Phase.QUEUED:
            self._broker.ask(self._trip.submit(), self._now_ms)
        elif self._agent.is_attached:
            self._ship(self._trip)

    def _leave(self, *, keeps_cell: bool) -> None:
        where, trip = self.where, self._trip
        self._broker.withdraw()
        self._agent.leave(keeps_cell=keeps_cell and trip is not None and trip.may_go_on)
        if keeps_cell and trip is not None:  # whoever waits for it hears that
            self._fail(CellStopped(trip.how_kept))
        self._end_trip()
        self._deliver(Left(where))

    def _abandon(self, trip: Trip) -> None:
        self._broker.withdraw()
        self._agent.leave()
        self._fail(CellStopped(trip.how_left))

    # --- the broker

    def _take_news(self, news: News | None) -> None:
        trip = self._trip
        match news:
            case None:
                pass
            case say.Granted():
                assert trip is not None
                trip.move(Phase.ATTACHING)
                self._agent.take(news, trip.asked.wish, self._now_ms)
            case say.Revoked(lease=lease, sentence=sentence):
                if trip is not None and trip.phase is Phase.QUEUED and news.code == "cannot-start":
                    self._again(trip, sentence)  # its lease ended before it was granted
                elif trip is not None and trip.phase is Phase.RETURNING and self._agent.holds(lease):
                    trip.revoked = sentence  # the agent may still be sending; _tick gives up when it falls silent
                elif self._agent.holds(lease):
                    self._lease_over(sentence)
            case say.Refused(request=request, sentence=sentence):
                if trip is not None and trip.is_of(request):
                    self._broker.withdraw()
                    self._agent.drop()
                    self._fail(CellStopped(sentence))
            case say.Picture():
                self._deliver(Pictured(picture=news, where=self.where))
            case say.Found():
                self._deliver(CellsFound(news))
            case BulletinError():
                self._fail(news)
            case _:
                assert_never(news)

    # --- the agent

    def _from_agent(self, message: say.AgentToKernel, blobs: tuple[Blob, ...]) -> None:
        trip = self._trip
        match message:
            case say.Attached(lease=lease):
                if self._agent.attached(lease, self._now_ms) and trip is not None:
                    self._attached(trip, message)
            case say.Unknown():
                self._agent.forgotten(trip, self._now_ms)
            case say.Gone(sentence=sentence):
                self._lease_over(sentence)
            case say.Lost(cell=cell, sentence=sentence):
                is_ours = trip is not None and trip.is_under_way and trip.cell == cell
                if is_ours and trip is not None and trip.asked.joins is None and message.code == "reclaimed":
                    self._run_again(trip, sentence)
                else:
                    self._lease_over(sentence, is_cell_lost=is_ours)
            case say.Notice(cell=cell, sentence=sentence):
                if trip is not None and trip.is_under_way and trip.cell == cell:
                    trip.note(sentence)
            case say.Refused(sentence=sentence):
                self._agent.drop()
                self._fail(RefusedError(sentence))
            case say.Malformed(problem=problem):
                self._garbled_by_agent(f"it could not read this kernel's message: {problem}")
            case say.Pong():
                if trip is not None and trip.is_under_way and self._agent.is_attached:
                    trip.is_taken = True
            case say.Output(late=True):
                self._agent.overheard(message, blobs)
            case say.Chunk() | say.Took() | say.Output() | say.Asked() | say.Ended():
                if trip is not None and trip.is_under_way and trip.cell == message.cell:
                    self._of_cell(trip, message, blobs)
            case _:
                assert_never(message)

    def _ship(self, trip: Trip) -> None:
        where = self.where
        assert where is not None
        if trip.asked.lease not in {None, where.lease}:
            self._deliver(Moved(trip.waited_ms(self._now_ms)))
            self._agent.rest(self._now_ms)
            self._end_trip()
            return
        trip.ship(where, self._agent.rings, self._now_ms)

    def _attached(self, trip: Trip, attached: say.Attached) -> None:
        """The agent let us in, for the first time or again, and has a cell, or none."""
        cell, lacks = attached.cell, attached.lacks
        if trip.asked.joins is not None and cell != trip.cell:
            self._agent.leave()
            self._fail(CellLost("The node does not have the cell any more."))
            return
        if trip.asked.joins is not None and trip.phase is Phase.ATTACHING:
            where = self.where
            assert where is not None
            trip.join(where, self._now_ms)
            return
        if trip.phase is Phase.ATTACHING or (cell != trip.cell and trip.is_under_way and not trip.is_taken):
            self._ship(trip)
        elif not trip.is_under_way:
            pass
        elif cell != trip.cell:
            self._agent.leave()
            self._fail(CellLost("The node of your cell was restarted and lost it."))
        elif lacks or (trip.phase is Phase.SHIPPING and lacks is None):  # some is lost; the cell cannot have begun
            self._agent.leave()
            self._again(trip, _BROKE)
        elif trip.is_state_in_doubt(lacks):
            self._agent.leave()
            self._fail(CellLost(_BROKE))
        else:
            trip.resume(is_stop_heard=attached.is_stopped)

    def _of_cell(self, trip: Trip, message: OfCell, blobs: tuple[Blob, ...]) -> None:
        try:
            finished = trip.hear(message, blobs, self._agent.rings, self._now_ms)
        except MalformedMessage as error:
            self._garbled_by_agent(error.problem)
        except MemoryError:
            self._agent.leave()
            self._fail(CannotReturn("", "the notebook's memory is too small for it."))
        else:
            if finished is not None:
                self._deliver(finished)
                trip.done()  # afterwards: the notebook need not wait for that
                if trip.revoked:
                    self._agent.drop()
                elif trip.asked.joins is not None:  # its executor has another notebook's variables
                    self._agent.leave()
                else:
                    self._agent.rest(self._now_ms)
                self._end_trip()

    # --- ends

    def _lease_over(self, sentence: str, *, is_cell_lost: bool = False) -> None:
        """The lease is no more, and not because we gave it back. A cell that did not start finds another."""
        if not self._agent.has_lease:
            return
        self._agent.drop()
        trip = self._trip
        if trip is None:
            return
        if trip.phase is Phase.ATTACHING or not (trip.is_taken or is_cell_lost):
            self._again(trip, sentence)
        else:
            self._fail(CellLost(sentence))

    def _again(self, trip: Trip, sentence: str) -> None:
        if trip.tries - trip.reclaims == TRIES:  # leases come to nothing again and again
            self._fail(CellLost(sentence))
        elif trip.stops:
            self._fail(CellStopped(NEVER_RAN))
        else:
            self._broker.withdraw()
            trip.again()
            self._broker.ask(trip.submit(), self._now_ms)

    def _run_again(self, trip: Trip, sentence: str) -> None:
        """The cell was ended in favour of somebody else, and nothing came of it: it begins anew."""
        self._agent.drop()
        if trip.stops:
            self._fail(CellStopped(f"{sentence} The cell was being stopped, so it is not run again."))
            return
        trip.note(f"{sentence} The cell is run again from its beginning as soon as there is another.")
        self._broker.withdraw()
        trip.from_the_beginning()
        self._broker.ask(trip.submit(), self._now_ms)

    def _garbled_by_agent(self, problem: str) -> None:
        """The agent is broken or of another version: no point in going on with it."""
        self._agent.leave()
        if self._trip is not None and self._trip.is_under_way:
            self._fail(CellLost(f"The node of your cell and this notebook do not understand each other ({problem})."))
        else:
            self._fail(MalformedMessage(problem))

    def _fail(self, error: BulletinError) -> None:
        if self._trip is not None:
            self._deliver(Failed(error))
            self._end_trip()

    def _end_trip(self) -> None:
        self._trip = None
        self._broker.cell_over()

    # --- time

    def _tick(self) -> None:
        self._take_news(self._broker.tick(self._now_ms))
        trip = self._trip
        if trip is None:
            self._agent.tick(self._now_ms)
        elif trip.has_waited_too_long(self._now_ms):
            self._broker.withdraw()
            self._fail(WaitedTooLong(show_duration(trip.asked.max_wait_ms or 0), self._broker.slot_word))
        elif not trip.tick(self._now_ms):
            self._abandon(trip)
        elif self._ping_ms + PING_MS <= self._now_ms:
            self._ping_ms = self._now_ms
            self._broker.pulse(self._now_ms)
            self._agent.pulse(trip, self._now_ms)
            if self._agent.is_silent(self._now_ms) and trip.revoked:
                self._lease_over(trip.revoked)
            elif self._agent.is_silent(self._now_ms):
                trip.note("The node of your cell does not answer; waiting for it. Press stop to leave it.")

    # --- small words

    def _act(self, action: Action) -> None:
        self._actions.append(action)

    def _deliver(self, delivery: Delivery) -> None:
        self._actions.append(Deliver(delivery))

    def _note(self, text: str) -> None:
        if self._trip is not None:
            self._trip.note(text)
