"""Promise 2: whatever is borrowed can be taken back, and nothing that a guarantee covers; two never take in turn."""

from collections.abc import Sequence

from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.projects import Preemption
from tests.scheduler.promises.books import Tenancy
from tests.scheduler.promises.keep_time import has_other_reasons, is_kept_from
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Report, Rule

#: So often one session may lose its cell while nothing comes from outside.
_MOST_TURNS = 3


class TakingRule(Rule):
    """Judges whoever is taken back."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._turns: dict[str, int] = {}

    def restart(self) -> None:
        """Count anew."""
        self._turns = {}

    def event(self, event: ev.Event, view: View) -> None:
        """Count anew when a cell ends by itself, or somebody asks who has not lost a cell."""
        if isinstance(event, ev.CellEnded | ev.RequestWithdrawn):
            self._turns = {}
        if isinstance(event, ev.RequestSubmitted) and event.session not in self._turns:
            self._turns = {}

    def action(self, action: act.Action, view: View) -> None:
        """Judge a decision before it is written down."""
        if isinstance(action, act.Evict):
            self._judge_eviction(action, view)
        if not isinstance(action, act.Reclaim | act.Pause):
            return
        victim = view.books.leases.get(action.lease)
        if victim is None or victim.is_reclaimed or victim.is_over:
            return
        if victim.is_requeued:
            return
        qos = view.tree.qos.get(victim.qos)
        if qos is not None and qos.preemption is Preemption.NEVER:
            self.report(2, "a cell that is never taken back is", f"{victim}")
        elif not self._may_be_taken(victim, view):
            by = view.covers_nominally.get(victim.lease)
            self.report(2, "what a guarantee covers is taken back", f"{victim}, covered by {by}")
        self._turns[victim.session] = self._turns.get(victim.session, 0) + 1
        if self._turns[victim.session] == _MOST_TURNS:
            others = ", ".join(name for name in self._turns if name != victim.session)
            self.report(2, "requests take from each other in turn", f"{victim.session} and {others}")

    def _judge_eviction(self, action: act.Evict, view: View) -> None:
        """Judge whether a session that is kept from those who borrow leaves for one of them."""
        if action.lease not in view.kept or has_other_reasons(view, view.books.leases[action.lease]):
            return
        victim = view.books.leases[action.lease]
        if all(is_kept_from(view, victim, request) for request in view.books.waiting.values()):
            self.report(5, "a session that is kept leaves for somebody who borrows", f"{victim}")

    def _may_be_taken(self, victim: Tenancy, view: View) -> bool:
        chain = view.tree.chain(victim.project)
        for covers in (view.covers, view.covers_nominally):
            by = covers.get(victim.lease)
            if by is None:
                return True
            for request in view.books.waiting.values():
                is_inside = by in view.tree.chain(request.event.project)
                if is_inside and by != chain[0] and request.event.project != victim.project:
                    return True
                if view.why_taken(victim, request, view.covered(request)) is not None:
                    return True
        return False

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Judge nothing more."""
