"""The notebook's side of a session as a pure machine: events and a time in, actions out.

It joins the conversation with the broker (may I have a lease) and with the agent (the lease, its connection) to the
run of one cell, and tells the main thread what comes of it. It knows no socket and no clock; `link` is its shell.
"""

from typing import assert_never

from bulletin.codes import CellOutcome, LeaseEnd
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
from bulletin.wire.messages.allowance_requests import AllowanceReport
from bulletin_magic.connection.agent_side import AgentSide
from bulletin_magic.connection.broker_side import BrokerNews, BrokerSide
from bulletin_magic.connection.cell_phase import CellPhase
from bulletin_magic.connection.cell_run import CellMessage, CellRun
from bulletin_magic.connection.deliveries import (
    AllowancesTold,
    CellList,
    Delivery,
    LeaseChanged,
    LeaseReleased,
    PoolStatus,
    RequestFailed,
)
from bulletin_magic.connection.requeueing import may_go_on, why_not_again
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.connection.session_events import (
    AgentConnected,
    AgentSaid,
    AllowancesAsked,
    BrokerSaid,
    CellListAsked,
    CellSubmitted,
    Deliver,
    MessageGarbled,
    PoolStatusAsked,
    QuestionAnswered,
    ReleaseAsked,
    SessionAction,
    SessionEvent,
    StopPressed,
    Tick,
)

PING_MS = 1_000
_BROKE = "The connection to the node broke while your variables were sent."


class SessionClient:
    """One kernel's session: at most one lease, at most one cell under way. Its shell performs the actions in order."""

    def __init__(self, hello: say.Hello, pool_description: str) -> None:
        """`pool_description` tells the user where the broker should be."""
        self._broker = BrokerSide(hello, pool_description, self._act, self._note)
        self._agent = AgentSide(self._act)
        self._run: CellRun | None = None
        self._ping_ms = 0
        self._now_ms = 0
        self._actions: list[SessionAction] = []

    @property
    def phase(self) -> CellPhase | None:
        """Where the cell is, if there is one."""
        return self._run.phase if self._run is not None else None

    @property
    def lease(self) -> LeaseInfo | None:
        """The lease that is held."""
        return self._agent.lease_info(self._broker.slot_word)

    @property
    def environment(self) -> say.EnvironmentFound:
        """How the executor's environment differs from the notebook's, as far as cells have used it."""
        return self._agent.environment

    @property
    def deadline_ms(self) -> int | None:
        """When to send the next Tick; None is never."""
        dues = [self._broker.deadline_ms, self._agent.done_due_ms]
        dues += [self._agent.deadline_ms] if self._run is None else [self._run.deadline_ms, self._ping_ms + PING_MS]
        return min((due for due in dues if due is not None), default=None)

    def step(self, event: SessionEvent, now_ms: int) -> list[SessionAction]:
        """Take in one event, return what to do. Late, early and repeated ones are harmless."""
        self._now_ms, self._actions = now_ms, []
        match event:
            case CellSubmitted():
                self._submit(event)
            case PoolStatusAsked() | CellListAsked() | AllowancesAsked():
                self._agent.tell_done()  # or its last cell would be listed
                self._broker.query(now_ms, event)
            case ReleaseAsked(keeps_cell=keeps_cell):
                self._release(keeps_cell=keeps_cell)
            case StopPressed():
                if self._run is not None and not self._run.stop(now_ms):
                    self._abandon(self._run)
            case QuestionAnswered(text=text):
                if self._run is not None:
                    self._run.answer(text)
            case BrokerSaid(message=message):
                self._take_news(self._broker.take_message(message, now_ms))
            case AgentConnected():
                self._agent.on_connected(event, self._run, now_ms)
            case AgentSaid(message=message, blobs=blobs):
                self._agent.on_heard(now_ms)
                self._from_agent(message, blobs)
            case MessageGarbled(sender="broker", problem=problem):
                self._take_news(self._broker.on_garbled(problem))
            case MessageGarbled(problem=problem):
                self._give_agent_up(problem)
            case Tick():
                pass
            case _:
                assert_never(event)
        self._tick()
        actions, self._actions = self._actions, []  # not kept: they hold the cell's state
        return actions

    # --- what the user wants

    def _submit(self, submitted: CellSubmitted) -> None:
        if self._run is not None:
            raise IllegalMove(self._run.phase.name, "CellSubmitted")
        if submitted.joins or not self._agent.fits(submitted.resources):
            self._agent.release()
        self._broker.begin_cell(self._now_ms)
        self._agent.on_heard(self._now_ms)
        self._ping_ms = self._now_ms
        phase = CellPhase.ATTACHING if self._agent.has_lease else CellPhase.QUEUED
        self._run = CellRun(submitted, phase, self._now_ms, self._agent.send, self._deliver)
        if phase is CellPhase.QUEUED:
            self._request_lease(self._run)
        elif self._agent.is_attached:
            self._send_cell(self._run)

    def _release(self, *, keeps_cell: bool) -> None:
        lease, run = self.lease, self._run
        self._broker.withdraw()
        self._agent.release(keeps_cell=keeps_cell and run is not None and run.may_go_on)
        if keeps_cell and run is not None:  # whoever waits for it hears that
            self._fail(CellStopped(run.kept_sentence))
        self._end_run()
        self._deliver(LeaseReleased(lease))

    def _abandon(self, run: CellRun) -> None:
        self._broker.withdraw()
        self._agent.release()
        self._fail(CellStopped(run.abandoned_sentence))

    # --- the broker

    def _take_news(self, news: BrokerNews | None) -> None:
        run = self._run
        match news:
            case None:
                pass
            case say.Granted():
                assert run is not None
                run.move(CellPhase.ATTACHING)
                self._agent.take(news, run.submitted.resources, self._now_ms)
            case say.LeaseCost(lease=lease) | say.NodeMoved(lease=lease):
                if self._agent.holds(lease):
                    self._agent.note_change(news, run, self._now_ms)
                    if run is not None:
                        run.note_lease(self.lease)
            case say.Revoked(lease=lease, sentence=sentence):
                if run is not None and run.phase is CellPhase.QUEUED and news.code is LeaseEnd.CANNOT_START:
                    self._requeue(run, sentence)  # its lease ended before it was granted
                elif run is not None and self._agent.holds(lease) and may_go_on(run, news):
                    # The agent may still be heard; _tick gives up when it falls silent.
                    run.revoked, run.revoked_outcome = sentence, news.code.outcome
                elif self._agent.holds(lease):
                    if run is not None and run.phase is CellPhase.ATTACHING and news.code is LeaseEnd.EVICTED:
                        run.note(f"{sentence} Another place is asked for.")
                    self._lease_over(sentence, news.code.outcome)
            case say.Refusal(request=request, sentence=sentence):
                if run is not None and run.is_own_request(request):
                    self._broker.withdraw()
                    self._agent.drop()
                    self._fail(CellStopped(sentence))
            case say.Picture():
                self._deliver(PoolStatus(picture=news, lease=self.lease))
            case say.Found() | AllowanceReport():
                self._deliver(CellList(news) if isinstance(news, say.Found) else AllowancesTold(news))
            case BulletinError():
                self._fail(news)
            case _:
                assert_never(news)

    def _request_lease(self, run: CellRun) -> None:
        """Ask for a lease, unless whoever sent the cell hears first that the one is gone which its state is for."""
        if run.submitted.is_told_of_loss and run.submitted.lease_id is not None:
            self._deliver(LeaseChanged(run.waited_ms(self._now_ms), has_place=False))
            self._end_run()
        else:
            self._broker.request_lease(run.lease_request(), self._now_ms)

    # --- the agent

    def _from_agent(self, message: say.AgentToKernel, blobs: tuple[Blob, ...]) -> None:
        run = self._run
        if isinstance(message, say.FromFolder):
            self._agent.on_folder_message(message, blobs)
            return
        match message:
            case say.Attached(lease=lease):
                if self._agent.on_attached(lease, self._now_ms) and run is not None:
                    self._send_or_resume(run, message)
            case say.Unknown():
                self._agent.on_forgotten(run, self._now_ms)
            case say.Gone(sentence=sentence):
                if run is not None and run.revoked:
                    self._lease_over(run.revoked, run.revoked_outcome)
                else:
                    self._lease_over(sentence)
            case say.Lost(cell=cell, sentence=sentence):
                is_lost = run is not None and run.is_under_way and run.cell == cell
                self._lease_over(sentence, message.code if is_lost or run is None else None, is_cell_lost=is_lost)
            case say.Notice(cell=cell, sentence=sentence):
                if run is not None and run.is_under_way and run.cell == cell:
                    run.note(sentence)
                elif run is None:
                    self._agent.on_late_notice(cell, sentence)
            case say.Refusal(sentence=sentence):
                self._agent.drop()
                self._fail(RefusedError(sentence))
            case say.Malformed(problem=problem):
                self._give_agent_up(f"it could not read this kernel's message: {problem}")
            case say.Pong():
                if run is not None and run.is_under_way and self._agent.is_attached:
                    run.is_taken = True
            case say.Output(late=True):
                self._agent.on_late_output(message, blobs)
            case say.Chunk() | say.Took() | say.Output() | say.Asked() | say.Ended():
                if run is not None and run.is_under_way and run.cell == message.cell:
                    self._take_cell_message(run, message, blobs)
            case _:
                assert_never(message)

    def _send_cell(self, run: CellRun) -> None:
        lease = self.lease
        assert lease is not None
        if run.submitted.lease_id not in {None, lease.lease_id}:
            self._deliver(LeaseChanged(run.waited_ms(self._now_ms)))
            self._agent.schedule_idle_ping(self._now_ms)
            self._end_run()
            return
        run.send(lease, self._agent.rings, self._now_ms, self._agent.probe_folder(run))

    def _send_or_resume(self, run: CellRun, attached: say.Attached) -> None:
        """Send the cell, or go on with it: the agent accepted the ticket, and has a cell, or none."""
        cell, lacks = attached.cell, attached.lacks
        if run.submitted.joins is not None and cell != run.cell:
            self._agent.release()
            self._fail(CellLost("The node does not have the cell any more."))
            return
        if run.submitted.joins is not None and run.phase is CellPhase.ATTACHING:
            lease = self.lease
            assert lease is not None
            run.join(lease, self._now_ms)
            return
        if run.phase is CellPhase.ATTACHING or (cell != run.cell and run.is_under_way and not run.is_taken):
            self._send_cell(run)
        elif not run.is_under_way:
            pass
        elif cell != run.cell:
            self._agent.release()
            self._fail(CellLost("The node of your cell was restarted and lost it."))
        elif lacks or (run.phase is CellPhase.SHIPPING and lacks is None):  # some is lost; the cell cannot have begun
            self._agent.release()
            self._requeue(run, _BROKE)
        elif run.is_state_in_doubt(lacks):
            self._agent.release()
            self._fail(CellLost(_BROKE))
        else:
            run.resume(is_stop_heard=attached.is_stopped)

    def _take_cell_message(self, run: CellRun, message: CellMessage, blobs: tuple[Blob, ...]) -> None:
        try:
            finished = run.take_message(message, blobs, self._agent.rings, self._now_ms)
        except MalformedMessage as error:
            self._give_agent_up(error.problem)
        except MemoryError:
            self._agent.release()
            self._fail(CannotReturn("", "the notebook's memory is too small for it."))
        else:
            if finished is not None:
                self._deliver(self._agent.with_environment(finished))
                self._agent.tell_done_soon(run.all_seen, self._now_ms)  # the notebook need not wait for that
                if run.revoked:
                    self._agent.drop()
                elif run.submitted.joins is not None:  # its executor has another notebook's variables
                    self._agent.release()
                else:
                    self._agent.schedule_idle_ping(self._now_ms)
                self._end_run()

    # --- ends

    def _lease_over(self, sentence: str, outcome: CellOutcome | None = None, *, is_cell_lost: bool = False) -> None:
        """Drop a lease that was taken from us. A cell that did not start finds another; one that ran is lost.

        `outcome` is that of the cell, where the pool says it.
        """
        if not self._agent.has_lease:
            return
        run = self._run
        said = self._agent.lose(sentence, outcome, is_idle=run is None)
        if run is None:
            return
        if run.phase is CellPhase.ATTACHING or not (run.is_taken or is_cell_lost):
            run.may_have_begun |= run.phase is CellPhase.RUNNING
            self._requeue(run, sentence)
        elif outcome is CellOutcome.RECLAIMED and run.submitted.joins is None:
            self._restart(run, sentence)
        else:
            self._fail(CellLost(said, outcome))

    def _requeue(self, run: CellRun, sentence: str) -> None:
        if (error := why_not_again(run, sentence)) is not None:
            self._fail(error)
        else:
            self._broker.withdraw()
            run.requeue()
            self._request_lease(run)

    def _restart(self, run: CellRun, sentence: str) -> None:
        """Run the cell anew on another lease: it was ended in favour of somebody else, and nothing came of it."""
        self._agent.drop()
        if run.is_stopping:
            self._fail(CellStopped(f"{sentence} The cell was being stopped, so it is not run again."))
            return
        run.note(f"{sentence} The cell is run again from its beginning as soon as there is another.")
        self._broker.withdraw()
        run.restart()
        self._broker.request_lease(run.lease_request(), self._now_ms)

    def _give_agent_up(self, problem: str) -> None:
        """End the session with an agent that is broken or of another version."""
        self._agent.release()
        if self._run is not None and self._run.is_under_way:
            self._fail(CellLost(f"The node of your cell and this notebook do not understand each other ({problem})."))
        else:
            self._fail(MalformedMessage(problem))

    def _fail(self, error: BulletinError) -> None:
        if self._run is not None:
            self._deliver(RequestFailed(error))
            self._end_run()

    def _end_run(self) -> None:
        self._run = None
        self._broker.end_cell()

    # --- time

    def _tick(self) -> None:
        self._take_news(self._broker.tick(self._now_ms))
        self._agent.tell_done(by_ms=self._now_ms)
        run = self._run
        if run is None:
            self._agent.tick(self._now_ms)
        elif run.has_waited_too_long(self._now_ms):
            self._broker.withdraw()
            word = self._broker.slot_word if run.submitted.resources.gpus else "CPU slot"
            self._fail(WaitedTooLong(show_duration(run.submitted.max_wait_ms or 0), word))
        elif not run.tick(self._now_ms):
            self._abandon(run)
        elif self._ping_ms + PING_MS <= self._now_ms:
            self._ping_ms = self._now_ms
            self._broker.ping(self._now_ms)
            self._agent.ping(run, self._now_ms)
            if self._agent.is_silent(self._now_ms) and run.revoked:
                self._lease_over(run.revoked, run.revoked_outcome)
            elif self._agent.is_silent(self._now_ms):
                node = "" if self.lease is None else f" ({self.lease.node})"
                run.note(f"The node of your cell{node} does not answer; waiting for it. Press stop to leave it.")

    def _act(self, action: SessionAction) -> None:
        self._actions.append(action)

    def _deliver(self, delivery: Delivery) -> None:
        self._actions.append(Deliver(delivery))

    def _note(self, text: str) -> None:
        if self._run is not None:
            self._run.note(text)
