"""Who is told where they stand, and when: those in front each second, others when it is noticed that it changed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import islice

import msgspec

from bulletin.ids import RequestId, SessionId
from bulletin.wire import messages as wire
from gpu_worker.broker import translate
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.announcement_note import NO_ANNOUNCEMENT
from gpu_worker.broker.left_cells import LeftCells
from gpu_worker.broker.wait_estimates import WaitEstimates
from gpu_worker.faults import Faults
from gpu_worker.scheduler.estimates import explain
from gpu_worker.scheduler.estimates.wait_history import WaitHistory, wait_kind
from gpu_worker.scheduler.leases.resources import LANES
from gpu_worker.scheduler.machine import Scheduler

#: After each telling of what is new the broker does other things for so long: at least, and in times of what it took.
_LEAST_PAUSE_S, _PAUSES = 0.02, 4
#: So many are looked at before the broker hears others again.
_SLICE = 200
#: Of those further back so many are looked at each second.
_MOST_OTHERS = 200
_FAULT = "The pool had an error with this request and took it back; the broker's log says which."


class QueueTeller:
    """Tells the kernels of requests that wait their places, reasons and waits."""

    def __init__(
        self,
        scheduler: Scheduler,
        pending: Mapping[RequestId, PendingRequest],
        now_ms: Callable[[], int],
        tell: Callable[[SessionId, wire.Message], Awaitable[None]],
        estimates: WaitEstimates,
        give_up: Callable[[RequestId, str], Awaitable[object]],
        faults: Faults,
    ) -> None:
        """Take `give_up`, which takes a request back of which nobody can say where it stands, with a sentence."""
        self._scheduler, self._pending, self._now_ms, self._tell = scheduler, pending, now_ms, tell
        self._estimates, self._give_up, self._faults = estimates, give_up, faults
        self._failed: list[RequestId] = []
        self.engine_words = ""  #: what an engine says of nodes that are to come
        self.left_cells: LeftCells | None = None  #: set by the broker, which knows whose kernels are gone
        self.announcement = NO_ANNOUNCEMENT  #: what an admin tells everybody
        self.history = WaitHistory()  #: since the broker is there
        self._news = asyncio.Event()  #: places in line may have changed
        self._others: list[RequestId] = []  #: those further back who are to be looked at before it is their turn again

    def note_granted(self, pending: PendingRequest) -> None:
        """Count how long a request waited that is granted, and was told where it stood."""
        if pending.kind is not None and not pending.was_on_hold:
            self.history.note(pending.kind, self._now_ms() - pending.since_ms)

    def usual_ms(self, pending: PendingRequest, now_ms: int) -> int | None:
        """Find how long a request usually waits from now on; None where too few are known, it is new, or was held."""
        if pending.kind is None or pending.was_on_hold:
            return None
        return self.history.usual_ms(pending.kind, now_ms - pending.since_ms)

    def note_news(self) -> None:
        """Note that places in line may have changed."""
        self._news.set()

    def add_words(self, waiting: explain.WaitExplanation) -> explain.WaitExplanation:
        """Add what is known of nodes that are to come, for who waits for room alone."""
        if not self.engine_words or not waiting.waits_for_room:
            return waiting
        before = f"{waiting.reason}; " if self._scheduler.state.nodes else ""
        return msgspec.structs.replace(waiting, reason=before + self.engine_words)

    def _add_left_cells(
        self, waiting: explain.WaitExplanation, request: RequestId, pending: PendingRequest
    ) -> explain.WaitExplanation:
        """Add which cells of the user's own go on without their notebook, where one may be in the way."""
        state = self._scheduler.state
        if self.left_cells is None or waiting.is_on_hold or waiting.is_room_made:
            return waiting
        left = self.left_cells.describe(state.pending[request], pending, state.leases)
        return msgspec.structs.replace(waiting, reason=f"{waiting.reason}; {left}") if left else waiting

    def tell_anew(self, request: RequestId) -> None:
        """Have a request told soon where it stands, wherever that is: a person changed it."""
        pending = self._pending.get(request)
        if pending is not None:
            pending.told = None
        self.note_news()

    async def run(self) -> None:
        """Say where requests stand as soon as that changes; with a long line not each time, for it is much work."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._news.wait()
            began_s = clock()
            self._news.clear()
            with self._faults.contain(lambda: None, during="telling who waits"):
                await self.tell_front(everybody=False)
            await asyncio.sleep(max(_LEAST_PAUSE_S, (clock() - began_s) * _PAUSES))

    async def tell_front(self, *, everybody: bool) -> None:
        """Tell the first part of the line, everybody or those for whom something is new; and who has just come."""
        front = self._front()
        known = set(front)
        new = [request for request, one in self._pending.items() if one.told is None and request not in known]
        await self._tell_each([*front, *new], everybody=everybody)

    async def tell_others(self) -> None:
        """Look at some of those further back, in turn, and tell those for whom something is new."""
        if not self._others:
            known = set(self._front())
            self._others = [request for request in reversed(list(self._pending)) if request not in known]
        some = self._others[-_MOST_OTHERS:]
        del self._others[-_MOST_OTHERS:]
        await self._tell_each(reversed(some), everybody=False)

    def _front(self) -> list[RequestId]:
        state = self._scheduler.state
        return [request for lane in LANES for request in explain.standings(state, lane) if request in self._pending]

    async def _tell_each(self, requests: Iterable[RequestId], *, everybody: bool) -> None:
        """Tell each one where it stands at the time of its slice; the broker hears others between two slices."""
        each = iter(requests)
        while some := list(islice(each, _SLICE)):
            now_ms, state = self._now_ms(), self._scheduler.state
            starts, announced = self._estimates.update(now_ms), self.announcement.words_at(now_ms)
            told = []
            for request in some:
                pending = self._pending.get(request)
                if pending is None:
                    continue
                with self._faults.contain(partial(self._failed.append, request), request=request):
                    waiting = explain.waiting(state, request, now_ms, starts)
                    if waiting is None:
                        continue
                    waiting = self._add_left_cells(self.add_words(waiting), request, pending)
                    pending.was_on_hold |= waiting.is_on_hold
                    if pending.kind is None:
                        pending.kind = wait_kind(pending.message.qos, now_ms, waiting)
                    news = translate.queued(pending.message.request, waiting, self.usual_ms(pending, now_ms))
                    is_unheard = announced not in ("", pending.announced)
                    if everybody or is_unheard or _is_new(news, pending.told):
                        pending.told = news
                        if is_unheard:
                            pending.announced, news = announced, msgspec.structs.replace(news, announcement=announced)
                        told.append((pending.session, news))
            for session, news in told:
                await self._tell(session, news)
            while self._failed:
                await self._give_up(self._failed.pop(), _FAULT)
            await asyncio.sleep(0)


def _is_new(news: wire.Queued, told: wire.Queued | None) -> bool:
    """Whether it says more than that time has passed."""
    if told is None:
        return True
    same = (told.position, told.reason, told.in_quota) == (news.position, news.reason, news.in_quota)
    return not same or (told.wait_ms is None) != (news.wait_ms is None)
