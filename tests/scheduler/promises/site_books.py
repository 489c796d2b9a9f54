"""Plays a history at the size of a real site, and keeps an outsider's books: who waited, what idled, what was lost."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence

from bulletin.ids import LeaseId, RequestId
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.machine import Scheduler
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.judge import Judge
from tests.scheduler.promises.tree import Side


@dataclasses.dataclass(slots=True)
class Asked:
    """A request: when it came, and what became of it. Times are in seconds since the history began."""

    at: float
    event: ev.RequestSubmitted
    end: float | None = None  #: granted, refused or withdrawn
    is_granted: bool = False


@dataclasses.dataclass(slots=True)
class Held:
    """A lease: who has it, where, and since when its cell runs."""

    asked: Asked
    node: str
    gpus: int
    is_busy: bool = True  #: a cell runs, or is about to begin
    began: float | None = None
    leaves: bool = False  #: it was asked to
    order: float = 0.0  #: when it began: the first time, when it was granted
    has_begun: bool = False


@dataclasses.dataclass(slots=True)
class Spell:
    """Something that was so, without a break."""

    what: str
    begin: float
    end: float


class Site(Judge):
    """Hears one history as the referee does, and only counts. No rule of the scheduler is in it."""

    def __init__(self, history: hi.History) -> None:
        super().__init__(history)
        self.asked: dict[RequestId, Asked] = {}
        self.waiting: dict[RequestId, Asked] = {}
        self.held: dict[LeaseId, Held] = {}
        self.nodes: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.closed: set[str] = set()  #: nodes that are gone or drained
        self.used: Counter[Side] = Counter()
        self.taken: list[tuple[float, Held, act.Right]] = []  #: cells that were asked to go
        self.lost: list[tuple[float, Held, float]] = []  #: cells that were ended so, and how long they had run
        self.idle_s = self.waited_idle_s = 0.0
        self.ran: dict[str, float] = {}  #: GPU seconds of cells, by project, also of those that were lost
        self.spells: list[Spell] = []
        self.watch: Callable[[Site], set[str]] | None = None
        self.steps = 0
        self._open: dict[str, float] = {}
        self._at = 0.0
        self._minute = (0, 0)
        self._guarantees: dict[Side, int] = {}
        self._known: dict[LeaseId, Held] = {}  #: all that were ever granted
        self.is_judged = False  #: by the referee, too

    def agent_of(self, lease: LeaseId) -> str | None:  # type: ignore[override]
        return self._known[lease].node if lease in self._known else None

    def see(self, event: ev.Event, actions: Sequence[act.Action], now_ms: int, scheduler: Scheduler) -> None:
        if self.is_judged:
            super().see(event, actions, now_ms, scheduler)
        now = (now_ms - self.history.begin_ms) / 1000
        self.steps += 1
        if now > self._at:
            self._count_idle(now)
            self._look()
            self._at = now
        self._note(event, now)
        for action in actions:
            self._decided(action, now)

    def _look(self) -> None:
        """Ask for all that was so since the last step, before time goes on."""
        found = self.watch(self) if self.watch else set()
        for name in [name for name in self._open if name not in found]:
            self.spells.append(Spell(name, self._open.pop(name), self._at))
        for name in found:
            self._open.setdefault(name, self._at)

    def finish(self) -> None:
        """End what still goes on."""
        self.spells += [Spell(name, begin, self._at) for name, begin in self._open.items()]
        self._open = {}

    @property
    def now(self) -> float:
        return self._at

    @property
    def now_ms(self) -> int:
        return self.history.begin_ms + round(self._at * 1000)

    def _count_idle(self, now: float) -> None:
        span = now - self._at
        if span <= 0:
            return
        idle = sum(self.nodes[node] for node in self.nodes if node not in self.closed)
        for held in self.held.values():
            if held.is_busy:
                idle -= held.gpus if held.node not in self.closed else 0
                name = held.asked.event.project
                self.ran[name] = self.ran.get(name, 0.0) + span * held.gpus
        self.idle_s += span * idle
        if self.waiting:
            self.waited_idle_s += span * idle

    def _note(self, event: ev.Event, now: float) -> None:
        match event:
            case ev.AgentJoined():
                self.nodes[event.agent] = len(event.slots)
                self.types[event.agent] = event.slots[0].name
                self.closed.discard(event.agent)
                self._join(event, now)
            case ev.AgentLost():
                self.closed.add(event.agent)
            case ev.NodeDrained():
                (self.closed.add if event.is_drained else self.closed.discard)(event.agent)
            case ev.RequestSubmitted():
                one = self.asked.setdefault(event.request, Asked(now, event))
                if one.end is None:
                    self.waiting[event.request] = one
            case ev.RequestWithdrawn():
                self._end_request(event.request, now)
            case ev.CellStarted() if event.lease in self.held:
                held = self.held[event.lease]
                self._busy(held, True)
                held.began = now
                held.order = now if held.has_begun else held.order
                held.has_begun = True
            case ev.CellEnded() if event.lease in self.held:
                held = self.held[event.lease]
                self._busy(held, False)
                held.began = None
            case ev.LeaseEnded():
                self._end_lease(event.lease, now)
            case _:
                pass

    def _join(self, event: ev.AgentJoined, now: float) -> None:
        """Take what an agent says that it holds; what it does not name is over."""
        names = {one.lease for one in event.held}
        for lease in [lease for lease, held in self.held.items() if held.node == event.agent and lease not in names]:
            self._end_lease(lease, now)
        for one in event.held:
            held = self.held.setdefault(one.lease, self._known[one.lease])
            self._busy(held, one.cell is not None)
            held.began = now - one.running_ms / 1000 if one.cell is not None else None

    def _decided(self, action: act.Action, now: float) -> None:
        match action:
            case act.Grant() if action.lease not in self.held and action.request in self.waiting:
                asked = self.waiting.pop(action.request)
                asked.end, asked.is_granted = now, True
                held = self.held[action.lease] = Held(asked, action.agent, len(action.slots), is_busy=False, order=now)
                self._busy(held, True)
                self._known[action.lease] = held
            case act.Refuse():
                self._end_request(action.request, now)
            case act.Reclaim() | act.Pause() if action.lease in self.held:
                held = self.held[action.lease]
                if not held.leaves:
                    held.leaves = True
                    right = action.right if isinstance(action, act.Reclaim) else act.Right.GUARANTEE
                    self.taken.append((now, held, right))
            case act.EndLease():
                self._end_lease(action.lease, now)
            case _:
                pass

    def _busy(self, held: Held, is_busy: bool) -> None:
        if held.is_busy != is_busy:
            held.is_busy = is_busy
            for side in self.books.tree.chain(held.asked.event.project):
                self.used[side] += held.gpus if is_busy else -held.gpus

    def _end_request(self, request: RequestId, now: float) -> None:
        asked = self.waiting.pop(request, None)
        if asked is not None:
            asked.end = now

    def _end_lease(self, lease: LeaseId, now: float) -> None:
        held = self.held.pop(lease, None)
        if held is None:
            return
        if held.is_busy and held.began is not None:
            self.lost.append((now, held, now - held.began))
        self._busy(held, False)

    # What people ask

    def guarantees(self) -> dict[Side, int]:
        """Compute the guarantees now, in GPUs, smaller where there are fewer."""
        there = sum(gpus for node, gpus in self.nodes.items() if node not in self.closed)
        minute = self.now_ms // 60_000, there
        if minute != self._minute:  # class hours begin and end at a full minute
            self._minute = minute
            found = self.books.tree.shrunk(self.now_ms, there * 1000)
            self._guarantees = {side: milli // 1000 for side, milli in found.items()}
        return self._guarantees

    def owed(self) -> set[str]:
        """List projects that wait for one GPU of any kind, and use less than is guaranteed to them."""
        wants = Counter(
            one.event.project for one in self.waiting.values() if one.event.gpus == 1 and not one.event.gpu_type
        )
        if not wants:
            return set()
        guaranteed = self.guarantees()
        found = set()
        for project in wants:
            for side in self.books.tree.chain(project):
                if self.used[side] + 1 <= guaranteed.get(side, 0):
                    found.add(f"owed {side}")
        return found

    def idling(self) -> set[str]:
        """List nodes with as many GPUs that run nothing as somebody waits for there."""
        if not self.waiting:
            return set()
        wants: dict[str, int] = {}
        for one in self.waiting.values():
            name = one.event.gpu_type
            wants[name] = min(wants.get(name, 99), one.event.gpus)
        busy: Counter[str] = Counter()
        for held in self.held.values():
            if held.is_busy:
                busy[held.node] += held.gpus
        found = set()
        for node, gpus in self.nodes.items():
            if node in self.closed:
                continue
            free = gpus - busy[node]
            if any(least <= free and name in self.types[node] for name, least in wants.items()):
                found.add(f"idle {node}")
        return found

    def longest(self, prefix: str) -> float:
        """Find the longest spell of those whose name begins so."""
        return max((spell.end - spell.begin for spell in self.spells if spell.what.startswith(prefix)), default=0.0)

    def ran_s(self, project: str) -> float:
        """Compute for how many GPU seconds cells of a project ran."""
        return self.ran.get(project, 0.0)

    def waits(self, prefix: str, after: float = 0.0, before: float = float("inf")) -> list[float]:
        """List what each request of these sessions waited, also those that still do."""
        return sorted(
            (one.end if one.end is not None else self._at) - one.at
            for one in self.asked.values()
            if one.event.session.startswith(prefix) and after <= one.at < before
        )

    def losses(self, prefix: str = "") -> list[float]:
        """List for how long the cells of these sessions had run that were lost, in GPU seconds."""
        return [s * held.gpus for _, held, s in self.lost if held.asked.event.session.startswith(prefix)]


def play_site(history: hi.History, watch: Callable[[Site], set[str]] | None = None, *, is_judged: bool = False) -> Site:
    """Play a history, and count."""
    site = Site(history)
    site.watch, site.is_judged = watch, is_judged
    Driver(history, site).play()
    site.finish()
    return site
