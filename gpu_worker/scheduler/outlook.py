"""When each of those who wait will start at the latest: if every cell uses its whole walltime, and nobody else comes.

Those in line are seated one after the other, each where it can start first. When class hours begin or end meanwhile,
the line is put in order anew by what is guaranteed then, and who is within a guarantee takes running cells back.
"""

from collections.abc import Iterable, Iterator, Sequence

from bulletin.ids import LeaseId, RequestId
from gpu_worker.scheduler.answers import Start
from gpu_worker.scheduler.forecast import Forecast
from gpu_worker.scheduler.leases import Lease, Request, lease_of
from gpu_worker.scheduler.life import Phase
from gpu_worker.scheduler.lines import Lines
from gpu_worker.scheduler.nodes import Node
from gpu_worker.scheduler.projects import Preemption
from gpu_worker.scheduler.reclaim import VictimSelection, is_covered
from gpu_worker.scheduler.resources import Lane
from gpu_worker.scheduler.state import State

#: So often class hours begin or end before nobody looks further.
_MOST_TURNS = 8
#: A lease and when it would be gone.
Loss = tuple[Lease, int]


class Outlook:
    """One lane of the pool, as far as it is foreseen. Nothing in the state changes for it."""

    def __init__(self, state: State, lane: Lane, now_ms: int) -> None:
        self._state, self._lane = state, lane
        self._nodes = [node for node in state.nodes.values() if node.lanes[lane].capacity and not node.is_drained]
        self._forecasts = [Forecast(state, node, now_ms) for node in self._nodes]
        self._until_ms: dict[LeaseId, int] = {}  #: of those that are there, or will be
        self._leases: dict[LeaseId, Lease] = {}
        self._starts: dict[RequestId, Start] = {}

    def starts(self, line: Sequence[Request], aside: Sequence[Request]) -> dict[RequestId, Start]:
        """When each one starts; not there are those that cannot, and those of whom nobody can say.

        `line` is in order, `aside` are those that may not run before class hours begin or end.
        """
        from_ms = self._state.accounts.turns_ms
        if from_ms is not None:
            for lease in self._state.leases.values():
                self._note(lease, self._state.end_ms(lease))
        self._seat(line, None, 0, from_ms)
        waiting = {one.id: one for one in (*line, *aside)}
        held_back = {one.id: None for one in aside}
        for number in range(_MOST_TURNS):
            waiting = {name: one for name, one in waiting.items() if name not in self._starts}
            if from_ms is None or not waiting:
                break
            for forecast in self._forecasts:
                forecast.begin(from_ms)
            then = self._accounts_at(from_ms, from_ms)
            if held_back:  # who might have run without that, as others are gone, does not wait for it
                before = self._accounts_at(from_ms - 1, from_ms)
                held_back = {name: None for name in held_back if not _is_allowed(before, waiting[name])}
            until_ms = then.turns_ms if number + 1 < _MOST_TURNS else None
            reached = self._seat(_in_order(then, waiting), then, from_ms, until_ms, held_back)
            held_back = {name: None for name in waiting if name not in reached}
            from_ms = until_ms
        return self._starts

    def _seat(
        self,
        line: Iterable[Request],
        then: Lines | None,
        from_ms: int,
        until_ms: int | None,
        held_back: Iterable[RequestId] = (),
    ) -> set[RequestId]:
        """Seat those who start before `until_ms`; who could only start later keeps its place from those behind it.

        Class hours begin or end at `from_ms`, and `then` are the accounts from then on. Who was looked at is returned.
        """
        trial = self._forecasts if until_ms is None else [one.copy() for one in self._forecasts]
        reached: set[RequestId] = set()
        for request in line:
            reached.add(request.id)
            shape, losses = request.entry.shape, list[Loss]()
            found = min(
                ((at_ms, n) for n, at in enumerate(trial) if (at_ms := at.start_ms(shape)) is not None), default=None
            )
            if then is not None and found is not None and found[0] > from_ms:
                at_ms, number, losses = self._take(trial, request, then, from_ms, found)
                found = at_ms, number
            if found is None:
                continue
            at_ms, number = found
            for lease, gone_ms in losses:
                trial[number].end(lease, self._until_ms[lease.id], gone_ms)
            end_ms = at_ms + request.walltime_ms
            slots = trial[number].seat(shape, end_ms)
            if until_ms is not None and at_ms >= until_ms:
                continue
            if trial is not self._forecasts:
                for lease, gone_ms in losses:
                    self._forecasts[number].end(lease, self._until_ms[lease.id], gone_ms)
                self._forecasts[number].put(slots, shape, end_ms)
            self._until_ms.update((lease.id, gone_ms) for lease, gone_ms in losses)
            self._starts[request.id] = at_ms, from_ms if losses or request.id in held_back else None
            if self._state.accounts.turns_ms is not None:
                agent = self._nodes[number].agent
                self._note(lease_of(request, agent, slots, Phase.BUSY, at_ms, shape.cost), end_ms)
        return reached

    def _take(
        self, trial: list[Forecast], request: Request, then: Lines, from_ms: int, found: tuple[int, int]
    ) -> tuple[int, int, list[Loss]]:
        """Where it starts first if it takes running cells back: when, on which node, and what it takes."""
        shape, best = request.entry.shape, (*found, list[Loss]())
        if not shape.cost or not is_covered(then.of(request.project), shape.cost):
            return best
        plan = VictimSelection(self._state, then, request, is_for_share=False)
        soon_ms = from_ms + max(qos.grace_ms for qos in self._state.qos.values())
        for number, node in enumerate(self._nodes):
            if best[0] <= soon_ms:
                break
            if node.holds(shape):
                forecast, losses = trial[number].copy(), list[Loss]()
                plan.begin()
                for lease, gone_ms in self._takeable(forecast, node, from_ms):
                    if gone_ms < best[0] and plan.takes(lease):
                        forecast.end(lease, self._until_ms[lease.id], gone_ms)
                        losses.append((lease, gone_ms))
                        at_ms = forecast.start_ms(shape)
                        if at_ms is not None and at_ms < best[0]:
                            best = at_ms, number, losses[:]
                            break
        for lease, _ in best[2]:
            for at in then.of(lease.project).path:
                at.going += lease.cost
        return best

    def _takeable(self, forecast: Forecast, node: Node, from_ms: int) -> list[Loss]:
        """Cells that run on a node then and may be taken back, with when they would be gone; the soonest first."""
        able: list[Loss] = []
        for lease in self._leases.values():
            until_ms, qos = self._until_ms[lease.id], self._state.qos.get(lease.qos)
            if lease.agent != node.agent or lease.lane != self._lane or until_ms <= from_ms or qos is None:
                continue
            gone_ms = max(from_ms, until_ms - lease.walltime_ms + qos.min_runtime_ms) + qos.grace_ms
            is_last = forecast.is_until(lease, until_ms)  # nobody who comes after it counts on its place
            if qos.preemption is not Preemption.NEVER and gone_ms < until_ms and is_last:
                able.append((lease, gone_ms))
        return sorted(able, key=lambda loss: loss[1])

    def _note(self, lease: Lease, until_ms: int) -> None:
        self._leases[lease.id], self._until_ms[lease.id] = lease, until_ms

    def _accounts_at(self, at_ms: int, used_ms: int) -> Lines:
        """Work out the accounts as they will be: with what is guaranteed at one time, and used at another."""
        then = self._state.accounts.foreseen(at_ms)
        for lease in self._leases.values():
            if self._until_ms[lease.id] > used_ms:
                then.use(lease.project, lease.user, lease.qos, lease.cost, +1)
        return then


def _is_allowed(accounts: Lines, request: Request) -> bool:
    return accounts.is_allowed(accounts.of(request.project), request.entry.shape)


def _in_order(accounts: Lines, waiting: dict[RequestId, Request]) -> Iterator[Request]:
    """Those who may run, in the order of these accounts; each is taken for granted while the others are looked at."""
    for request in waiting.values():
        accounts.enter(request.project, request.entry)
    while (found := accounts.next(set())) is not None:
        request = waiting[found[1].id]
        yield request
        accounts.leave(request.project, request.entry)
        accounts.use(request.project, request.user, request.qos, request.entry.shape.cost, +1)
