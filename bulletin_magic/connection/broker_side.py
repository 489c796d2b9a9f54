"""The broker as a session knows it: does it know us, what was it asked for, is it still there."""

from collections.abc import Callable
from enum import Enum
from typing import assert_never

from bulletin.codes import RefusalCode
from bulletin.errors import (
    BulletinError,
    MalformedMessage,
    NoPool,
    NotAllowed as NotAllowedError,
    Refused as RefusedError,
)
from bulletin.wire import messages as say
from bulletin.wire.messages.allowance_requests import AllowanceQuestion, AllowanceReport
from bulletin_magic.connection.deliveries import QueuePosition, RequestFailed, UserNote
from bulletin_magic.connection.session_events import (
    AllowancesAsked,
    CellListAsked,
    Deliver,
    PoolStatusAsked,
    SendToBroker,
    SessionAction,
)

#: What an unanswered Unknown may still be the answer to.
ECHO_MS = 1_000
SILENT_MS = 5_000
#: How long a greeting, and a question about the pool, may be left unanswered.
GREET_MS, LOOK_MS = 10_000, 5_000
#: The next time, for one that has left a greeting unanswered: if it is back, it is connected again by then.
GREET_AGAIN_MS = 1_500
#: Pings are a second apart. Where so much went by, this process stood still itself, and heard nobody.
STOOD_STILL_MS = 4_000
#: What may have been lost on a broken connection is said again after so long.
REPEAT_MS = 5_000

#: What of the broker's words concerns the cell or the lease. An error: what was asked for comes to nothing.
BrokerNews = (
    say.Granted
    | say.LeaseCost
    | say.NodeMoved
    | say.Revoked
    | say.Refusal
    | say.Picture
    | say.Found
    | AllowanceReport
    | BulletinError
)
#: Of so much news it is known that it was said: more than a broker has for a user.
_MOST_SAID = 256
#: What is asked beside cells.
Question = say.Look | say.Find | AllowanceQuestion


class BrokerStanding(Enum):
    """How well the broker knows us."""

    UNKNOWN = 0
    GREETING = 1  #: a Hello is on its way
    KNOWN = 2


class BrokerSide:
    """The conversation with the broker: at most one request and one look at the pool at a time."""

    def __init__(
        self, hello: say.Hello, pool_description: str, act: Callable[[SessionAction], None], note: Callable[[str], None]
    ) -> None:
        """`pool_description` tells the user where the broker should be; `note` says each sentence once in a cell."""
        self._hello, self._pool_description, self._act, self._note = hello, pool_description, act, note
        #: What the pool calls one slot.
        self.slot_word = "GPU"
        self._standing, self._was_welcome = BrokerStanding.UNKNOWN, False
        self._hello_ms = self._ping_ms = 0
        self._heard_ms = 0
        self._request: say.Submit | say.Join | None = None
        #: When the request was sent, or the broker spoke of it last.
        self._request_ms = 0
        self._greet_by_ms: int | None = None
        self._was_given_up = False  #: a greeting ran out, and nothing was heard since
        self._look_by_ms: int | None = None
        self._question: Question = say.Look()
        self._awaited = ""  #: the id of the request that whoever asked waits for
        self._is_cell_under_way = False
        self._was_heard_in_cell = False  #: since the cell was submitted
        self._announced = ("", "")  #: to which request, and what: it is said once
        self._was_restarted = False  #: while the cell is under way; told when it knows us again
        #: News for the user that came when nothing was under way to say it in, and the ids of what was said last.
        self._unsaid: list[say.News] = []
        self._said: dict[str, None] = {}

    @property
    def deadline_ms(self) -> int | None:
        """When `tick` has something to say."""
        return min((due for due in (self._greet_by_ms, self._look_by_ms) if due is not None), default=None)

    # --- what the session wants

    def begin_cell(self, now_ms: int) -> None:
        """Tell the user what happens to the broker from now on: a cell is under way."""
        self._heard_ms = now_ms
        self._is_cell_under_way, self._was_heard_in_cell, self._was_restarted = True, False, False
        self._say_news()

    def end_cell(self) -> None:
        """Forget the request: no cell is under way."""
        self._is_cell_under_way = False
        self._forget_request()

    def request_lease(self, request: say.Submit | say.Join, now_ms: int) -> None:
        """Ask for a lease until it is granted or refused; greet first where we are not known."""
        self._request, self._request_ms = request, now_ms
        if self._standing is BrokerStanding.KNOWN:
            self._send(request)
            return
        if not self._was_welcome:
            self._greet_by_ms = now_ms + (GREET_AGAIN_MS if self._was_given_up else GREET_MS)
        if self._standing is BrokerStanding.UNKNOWN:
            self._greet(now_ms)

    def withdraw(self) -> None:
        """Take the request back, if there is one."""
        if self._request is not None and self._standing is BrokerStanding.KNOWN:
            self._send(say.Withdraw(request=self._request.request))
        self._forget_request()

    def query(self, now_ms: int, asked: PoolStatusAsked | CellListAsked | AllowancesAsked) -> None:
        """Ask for a picture of the pool, for the cells that it has, or for more than the rules give.

        What becomes of a request that the user waits for is read in the answer, and is no news.
        """
        self._look_by_ms, self._question = now_ms + LOOK_MS, asked.question
        self._awaited = asked.awaited if isinstance(asked, AllowancesAsked) else ""
        self._say_news()
        if self._standing is BrokerStanding.KNOWN:
            self._send(self._question)
        elif self._standing is BrokerStanding.UNKNOWN:
            self._greet(now_ms)

    # --- what the broker says

    def take_message(self, message: say.ToKernel, now_ms: int) -> BrokerNews | None:
        """Take a message in; return what of it concerns the cell or the lease."""
        self._heard_ms, self._was_given_up = now_ms, False
        news = self._understand(message, now_ms)
        self._was_heard_in_cell = True
        return news

    def on_garbled(self, problem: str) -> BulletinError | None:
        """Give up on a broker that is broken or of another version; return the error for a cell that waits."""
        return self._refuse(MalformedMessage(problem))

    def _understand(self, message: say.ToKernel, now_ms: int) -> BrokerNews | None:
        match message:
            case say.Welcome():
                self._welcome(message, now_ms)
            case say.Refusal(request=None):
                return self._refused(message)
            case say.Refusal(code=RefusalCode.CANCELLED):
                return message
            case say.Refusal(request=request):
                if self._is_asked_for(request):
                    self._forget_request()
                    return RefusedError(message.sentence)
            case say.Queued():
                if isinstance(self._request, say.Submit) and self._is_asked_for(message.request):
                    self._request_ms = now_ms
                    self._tell_queue(self._request, message)
            case say.Granted(request=request):
                if self._is_asked_for(request):
                    self._forget_request()
                    return message
            case say.Picture() | say.Found() | AllowanceReport():
                if self._look_by_ms is not None:
                    self._look_by_ms = None
                    return message
            case say.LeaseCost() | say.NodeMoved() | say.Revoked():
                return message
            case say.Unknown():
                self._forgotten(now_ms)
            case say.Malformed(problem=problem):
                return self.on_garbled(f"it could not read this kernel's message: {problem}")
            case say.Pong(news=news):
                self._unsaid += news
                self._say_news()
            case _:
                assert_never(message)
        return None

    def _welcome(self, welcome: say.Welcome, now_ms: int) -> None:
        was_known = self._standing is BrokerStanding.KNOWN
        self._standing, self._was_welcome, self.slot_word = BrokerStanding.KNOWN, True, welcome.slot_word
        self._greet_by_ms = None
        if was_known:
            return  # the answer to an earlier Hello that was said again
        if self._look_by_ms is not None:
            self._send(self._question)
        if self._request is not None:
            self._request_ms = now_ms
            self._send(self._request)
        if self._was_restarted:
            self._was_restarted = False
            is_waiting = self._request is not None
            if welcome.is_known:
                what = "waits" if is_waiting else "goes on"
                self._note(f"The connection to the pool's broker was cut, and is there again; your cell {what}.")
            else:
                what = "is queued again" if is_waiting else "goes on"
                self._note(f"The pool's broker was restarted; your cell {what}.")

    def _forgotten(self, now_ms: int) -> None:
        if self._standing is BrokerStanding.GREETING and now_ms - self._hello_ms < ECHO_MS:
            return  # an answer to what was sent before the Hello
        if self._standing is BrokerStanding.KNOWN and self._is_cell_under_way and self._was_heard_in_cell:
            self._was_restarted = True
        self._greet(now_ms)

    def _refused(self, refused: say.Refusal) -> BulletinError | None:
        if refused.code is not RefusalCode.TOO_FAST or self._standing is not BrokerStanding.KNOWN:
            self._standing = BrokerStanding.UNKNOWN  # who asks too much is known still, and a Hello would be dropped
        if self._is_cell_under_way and self._request is None:
            self._note(f"The pool's broker says: {refused.sentence} Your cell goes on.")
        is_about_us = refused.code is RefusalCode.NOT_ALLOWED
        return self._refuse(NotAllowedError(refused.sentence) if is_about_us else RefusedError(refused.sentence))

    def _refuse(self, error: BulletinError) -> BulletinError | None:
        """End what was asked of a broker that there is no talking with; return the error for a cell that waits."""
        if self._look_by_ms is not None:
            self._look_by_ms = None
            self._act(Deliver(RequestFailed(error)))
        if self._request is None:
            return None
        self._forget_request()
        return error

    def _tell_queue(self, request: say.Submit, queued: say.Queued) -> None:
        waiting = QueuePosition(
            position=queued.position,
            reason=queued.reason,
            wait_ms=queued.wait_ms,
            usual_ms=queued.usual_ms,
            in_quota=queued.in_quota,
            gpus=request.gpus,
            slot_word=self.slot_word,
        )
        self._act(Deliver(waiting))
        announced = (request.request, queued.announcement)
        if queued.announcement and announced != self._announced:  # a broker that was restarted says it again
            self._announced = announced
            self._note(queued.announcement)

    def _say_news(self) -> None:
        """Say what is unsaid, each once, where something is under way that it can be said in."""
        if not self._is_cell_under_way and self._look_by_ms is None:
            return
        awaited = self._awaited if self._look_by_ms is not None else ""
        for news in self._unsaid:
            if news.id not in self._said:
                self._said[news.id] = None
                if not awaited or news.about != awaited:
                    self._act(Deliver(UserNote(news.sentence)))
        for oldest in list(self._said)[:-_MOST_SAID]:
            del self._said[oldest]
        self._unsaid = []

    # --- time

    def tick(self, now_ms: int) -> BulletinError | None:
        """Give up what has waited too long for an answer; return the error for the cell that asked."""
        if self._look_by_ms is not None and self._look_by_ms <= now_ms:
            self._look_by_ms = None
            if self._standing is BrokerStanding.GREETING:  # the Hello may be lost, and without a cell nobody repeats it
                self._standing = BrokerStanding.UNKNOWN
            self._act(Deliver(RequestFailed(self._no_answer())))
        if self._greet_by_ms is not None and self._greet_by_ms <= now_ms:
            self._standing, self._was_given_up = BrokerStanding.UNKNOWN, True
            self._forget_request()
            return self._no_answer()
        return None

    def ping(self, now_ms: int) -> None:
        """Ask whether it is there, and say again what may have been lost. Once a second while a cell is under way."""
        if now_ms - self._ping_ms > STOOD_STILL_MS:
            self._heard_ms = now_ms
        self._ping_ms = now_ms
        if self._standing is BrokerStanding.KNOWN:
            self._send(say.Ping())
            if self._request is not None and now_ms - self._request_ms >= REPEAT_MS:
                self._request_ms = now_ms
                self._send(self._request)
        elif self._standing is BrokerStanding.UNKNOWN or now_ms - self._hello_ms >= REPEAT_MS:
            self._greet(now_ms)
        if now_ms - self._heard_ms >= SILENT_MS and self._was_welcome:
            what = "waits until it does" if self._request is not None else "goes on"
            self._note(f"The pool's broker does not answer; your cell {what}.")

    # --- small words

    def _is_asked_for(self, request: str | None) -> bool:
        return self._request is not None and self._request.request == request

    def _forget_request(self) -> None:
        self._request = self._greet_by_ms = None

    def _greet(self, now_ms: int) -> None:
        self._standing, self._hello_ms = BrokerStanding.GREETING, now_ms
        self._send(self._hello)

    def _no_answer(self) -> NoPool:
        return NoPool(
            f"The GPU pool {self._pool_description} does not answer.",
            "Try again in a minute, or ask who runs the pool.",
        )

    def _send(self, message: say.FromKernel) -> None:
        self._act(SendToBroker(message))
