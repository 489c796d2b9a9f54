"""The referee: it hears events and actions, keeps books of its own, and says which promise was broken."""

from collections.abc import Sequence

from bulletin.ids import AgentId, LeaseId
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.machine import Scheduler
from tests.scheduler.promises.books import Books
from tests.scheduler.promises.budget_book import BudgetBook, budgets_of
from tests.scheduler.promises.guarantee_rule import GuaranteeRule
from tests.scheduler.promises.history import History
from tests.scheduler.promises.idle_rule import IdleRule
from tests.scheduler.promises.limit_rule import LimitRule
from tests.scheduler.promises.patience_rule import PatienceRule
from tests.scheduler.promises.reclaim_time import ReclaimTime
from tests.scheduler.promises.share_rule import ShareRule
from tests.scheduler.promises.taking_rule import TakingRule
from tests.scheduler.promises.tenant_rule import TenantRule
from tests.scheduler.promises.tree import Tree
from tests.scheduler.promises.type_rule import TypeRule
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Violation


class Judge:
    """Hears one history, step by step."""

    def __init__(self, history: History, most: int = 20) -> None:
        self.history, self.most = history, most
        self.violations: list[Violation] = []
        self.books = Books(Tree(history.settings))
        self.budgets = BudgetBook(self.books)
        self.is_told_of_jump = False
        self.is_told_early = False
        self.due_ms: int | None = None  #: when the scheduler wants to hear of the time
        times = ReclaimTime(history.delays)
        self.tenants = TenantRule(self.report)
        self.limits = LimitRule(self.report, self.budgets)
        self.rules = [
            self.tenants,
            self.limits,
            GuaranteeRule(self.report, times),
            TakingRule(self.report),
            IdleRule(self.report, times),
            TypeRule(self.report),
            ShareRule(self.report, times),
            PatienceRule(self.report, times),
        ]
        self.log: list[tuple[int, ev.Event, list[act.Action]]] = []
        self.keeps_log = False
        self._agents: dict[LeaseId, AgentId] = {}
        self._edge_ms: int | None = None
        self._now_ms = 0

    @property
    def is_done(self) -> bool:
        """Whether enough was found."""
        return len(self.violations) >= self.most

    def report(self, promise: int, what: str, facts: str) -> None:
        """Write a violation down."""
        self.violations.append(Violation(promise, self._now_ms - self.history.begin_ms, what, facts))

    def agent_of(self, lease: LeaseId) -> AgentId | None:
        """Find which agent was ever given the lease."""
        return self._agents.get(lease)

    def see(self, event: ev.Event, actions: Sequence[act.Action], now_ms: int, scheduler: Scheduler) -> None:
        """Judge a step."""
        self._now_ms = now_ms
        if self.keeps_log:
            self.log.append((now_ms, event, list(actions)))
        if self.is_told_early:
            self._judge_early(actions)
        if self.is_told_of_jump:
            self._restart()
            for lease in self.books.leases.values():
                lease.asked_ms = now_ms  # nobody's grace has passed with the jump
            self.limits.trusts_budgets = False
            self.is_told_of_jump = False
        for rule in self.rules:
            rule.elapse(now_ms)
        self.budgets.advance(now_ms)
        self.books.now_ms = now_ms
        self.tenants.foresee(event, self._view())
        budgets = budgets_of(self.books.tree)
        goes_on = isinstance(event, ev.CellStarted) and self.books.is_going_on(event)
        self.books.note(event, now_ms)
        self._restart_after(event, now_ms)
        if isinstance(event, ev.SettingsChanged) and budgets_of(self.books.tree) != budgets:
            self.limits.trusts_budgets = False
        if isinstance(event, ev.UseRefunded):
            self.budgets.refund(event)
        self.budgets.advance(now_ms)
        view = self._view()
        for rule in self.rules:
            rule.event(event, view)
        if isinstance(event, ev.CellStarted) and event.lease in self.books.leases and not goes_on:
            self._note_begin(event.lease)
        for action in actions:
            for rule in self.rules:
                rule.action(action, view)
            if self._write(action):
                view = self._view()
        for rule in self.rules:
            rule.step(event, actions, view)

    def _judge_early(self, actions: Sequence[act.Action]) -> None:
        """Judge a tick before its time: whatever is decided then should have had a time of its own."""
        self.is_told_early = False
        is_due = self.due_ms is not None and self.due_ms <= self._now_ms
        if actions and not is_due:
            facts = f"next due {None if self.due_ms is None else self.due_ms - self.history.begin_ms}: {actions}"
            self.report(0, "a tick before its time decides something", facts)

    def _view(self) -> View:
        return View(self.books, self.budgets)

    def _restart_after(self, event: ev.Event, now_ms: int) -> None:
        if isinstance(event, ev.AgentJoined | ev.AgentLost | ev.NodeDrained | ev.DrainPlanned | ev.SettingsChanged):
            self._restart()
            if isinstance(event, ev.AgentLost) or (isinstance(event, ev.AgentJoined) and event.held):
                self.limits.trusts_budgets = False
        if self._edge_ms is not None and now_ms >= self._edge_ms:
            self._restart()
        self._edge_ms = self.books.tree.next_edge_ms(now_ms)

    def _restart(self) -> None:
        for rule in self.rules:
            rule.restart()

    def _note_begin(self, name: LeaseId) -> None:
        lease = self.books.leases[name]
        qos = self.books.tree.qos.get(lease.qos)
        self.budgets.note_begin(lease.project, lease.cost, qos.grace_ms if qos else 0)

    def _write(self, action: act.Action) -> bool:
        """Write a decision down; whether it changed anything that a rule sees."""
        match action:
            case act.Grant():
                self._agents[action.lease] = action.agent
                if action.request not in self.books.submitted:
                    return False
                lease = self.books.grant(action)
                if lease is not None:
                    self.limits.granted(lease, self._view())
                return lease is not None
            case act.Refuse():
                self.books.refuse(action.request)
            case act.Evict():
                self.books.ask(action.lease, is_reclaim=False)
            case act.Reclaim() | act.Pause():
                is_share = isinstance(action, act.Reclaim) and action.right is act.Right.SHARE
                self.books.ask(action.lease, is_reclaim=True, grace_ms=action.grace_ms, is_for_share=is_share)
            case act.EndLease():
                self.books.end(action)
        return True
