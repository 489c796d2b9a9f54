"""Promise 20, and nodes of users' own: who has what of node pools, where nobody has a limit or a budget.

A node pool is all GPUs of a type here, which is called by it. Cells on a node that a user has brought use nothing of
the pool.
"""

from collections.abc import Sequence

from bulletin.ids import AgentId, UserName
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.projects import GPU_MILLI, Preemption
from tests.scheduler.promises.books import Tenancy, Waiting
from tests.scheduler.promises.history import History, Joins
from tests.scheduler.promises.judge import Judge
from tests.scheduler.promises.reclaim_time import ReclaimTime
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Report, Rule, seconds


class PoolRule(Rule):
    """Keeps since when an owner has less of a node pool than is guaranteed to it there, and asks for more."""

    def __init__(self, report: Report, history: History, times: ReclaimTime) -> None:
        super().__init__(report)
        self._times = times
        self._pools = {pool.name: pool.name.upper() for pool in history.settings.node_pools}
        projects = history.settings.projects
        self._owned = {(one.id, pool): milli for one in projects for pool, milli in one.pool_guarantees}
        joins = [at.what for at in history.happenings if isinstance(at.what, Joins)]
        self._owners: dict[AgentId, UserName] = {one.agent: one.owner for one in joins if one.owner}
        self._since: dict[tuple[str, str], int] = {}

    def restart(self) -> None:
        """Begin all clocks anew."""
        self._since = {}

    def elapse(self, now_ms: int) -> None:
        """Judge nothing before the books are as they are now."""

    def event(self, event: ev.Event, view: View) -> None:
        """Take nothing in before what was decided is known."""

    def action(self, action: act.Action, view: View) -> None:
        """Judge whose node a cell gets."""
        if isinstance(action, act.Grant) and action.request in view.books.waiting:
            owner = self._owners.get(action.agent)
            user = view.books.waiting[action.request].event.user
            if owner not in {None, user}:
                self.report(20, "a cell is on somebody else's own node", f"{action} of {user}, not of {owner}")

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Judge what has begun, and for how long owners have waited."""
        grants = [action.lease for action in actions if isinstance(action, act.Grant)]
        given = [view.books.leases[name] for name in grants if name in view.books.leases]
        for lease in given:
            self._judge_never(lease, view)
        served = {(lease.project, self._pool_of(view, lease)) for lease in given}
        for (project, pool), guaranteed in self._owned.items():
            uses = sum(lease.cost for lease in self._uses(view, pool) if lease.project == project)
            waits = [one for one in view.books.waiting.values() if self._asks_there(view, one, project, pool)]
            if not waits or uses + GPU_MILLI > guaranteed or (project, pool) in served:
                self._since.pop((project, pool), None)
                continue
            since_ms = self._since.setdefault((project, pool), view.now_ms)
            if view.now_ms > since_ms + self._times.longest_ms(view):
                facts = f"{waits[0]} for {seconds(view.now_ms - since_ms)}: {project} uses {uses} of {guaranteed}"
                self.report(20, "what is guaranteed of a node pool does not come", facts)

    def _judge_never(self, lease: Tenancy, view: View) -> None:
        """Judge whether one that is never taken back leaves of a node pool what all others are guaranteed there."""
        pool = self._pool_of(view, lease)
        if not self._is_never(view, lease) or pool is None:
            return
        kept: dict[str, int] = {project: milli for (project, name), milli in self._owned.items() if name == pool}
        uses: dict[str, int] = {}
        for one in self._uses(view, pool):
            if self._is_never(view, one):
                uses[one.project] = uses.get(one.project, 0) + one.cost
        if uses[lease.project] <= kept.get(lease.project, 0):
            return  # it is at home
        there = GPU_MILLI * sum(
            self._pools[pool] in slot.name
            for machine in view.machines()
            if machine.agent not in self._owners
            for slot in machine.slots.values()
        )
        needed = sum(max(uses.get(name, 0), kept.get(name, 0)) for name in {*uses, *kept})
        if needed > there:
            facts = f"{lease}: of {pool} others are guaranteed {kept}, and it uses {uses} of {there}"
            self.report(20, "a cell that is never taken back has what others are guaranteed of a node pool", facts)

    def _uses(self, view: View, pool: str) -> list[Tenancy]:
        return [one for one in view.books.leases.values() if one.is_using and self._pool_of(view, one) == pool]

    def _pool_of(self, view: View, lease: Tenancy) -> str | None:
        """Find the node pool of a lease; None on a node that a user has brought."""
        if lease.agent in self._owners:
            return None
        name = view.books.machines[lease.agent].slots[lease.slots[0]].name
        return next((pool for pool, gpu in self._pools.items() if gpu in name), None)

    def _asks_there(self, view: View, request: Waiting, project: str, pool: str) -> bool:
        """Whether a request asks for one GPU of a node pool, and nothing else is in its way."""
        at = request.event
        has_lease = any(lease.session == at.session for lease in view.books.leases.values())
        return at.project == project and at.gpus == 1 and at.gpu_type == self._pools[pool] and not has_lease

    @staticmethod
    def _is_never(view: View, lease: Tenancy) -> bool:
        return view.tree.qos[lease.qos].preemption is Preemption.NEVER


class PoolJudge(Judge):
    """Judges node pools and nodes of users' own, of which the other rules know nothing."""

    def __init__(self, history: History, most: int = 20) -> None:
        super().__init__(history, most)
        self.rules = [PoolRule(self.report, history, ReclaimTime(history.delays))]
