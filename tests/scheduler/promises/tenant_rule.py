"""Promises 15, 16, 18, 19: one tenant, one end of each request, holds, drains; the grace and shortest run of a cell."""

from collections.abc import Sequence
from typing import Any

from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises.shared_again import runs_ms
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Rule


class TenantRule(Rule):
    """Judges each decision by itself."""

    def __init__(self, report: object) -> None:
        super().__init__(report)  # type: ignore[arg-type]
        self._grants: dict[str, act.Grant] = {}
        self._lost: list[str] = []

    def event(self, event: ev.Event, view: View) -> None:
        """Remember whose lease a lost node ended; it was written down already."""

    def action(self, action: act.Action, view: View) -> None:
        """Judge a decision before it is written down."""
        match action:
            case act.Grant():
                self._grant(action, view)
            case act.Refuse():
                self._refuse(action, view)
            case act.Reclaim() | act.Pause():
                self._take(action, view)
            case _:
                pass

    def _grant(self, action: act.Grant, view: View) -> None:
        books = view.books
        if action.lease in self._grants:
            if self._grants[action.lease] != action:
                self.report(15, "a repeated grant differs", f"{self._grants[action.lease]}, then {action}")
            return
        self._grants[action.lease] = action
        request = books.waiting.get(action.request)
        if request is None:
            known = books.ended.get(action.request, "never submitted")
            self.report(15, "a request ended twice", f"{action.request} is granted, and was {known}")
            return
        at = request.event
        if at.request in books.on_hold:
            self.report(18, "a request that is held starts", f"{request}")
        machine = books.machines.get(action.agent)
        if machine is None or not machine.is_connected or action.agent in books.drained:
            self.report(16, "a grant on a node that is away or drained", f"{request} gets {action.agent}")
            return
        at_ms = books.planned.get(action.agent)
        if at_ms is not None and view.now_ms + action.walltime_ms > at_ms:
            self.report(19, "a cell may run into a drain", f"{request} gets {action.agent}")
        tenants = books.on_node(action.agent)
        for name in action.slots:
            holder = next((lease for lease in tenants if name in lease.slots), None)
            if holder is not None:
                self.report(16, "two tenants", f"{request} gets {name} of {action.agent}, which {holder} has")
            if name not in machine.slots or not books.matches(at, machine.slots[name]):
                self.report(16, "a slot that does not serve", f"{request} gets {name} of {action.agent}")
        if not books.is_of_size(at, machine):
            self.report(16, "a node that somebody else may be on", f"{request} gets {action.slots} of {action.agent}")
        if len(action.slots) != books.number(at) or len(set(action.slots)) != len(action.slots):
            self.report(16, "a wrong number of slots", f"{request} gets {action.slots}")
        cpus = at.cpus + sum(lease.cpus for lease in tenants)
        memory = at.memory_bytes + sum(lease.memory_bytes for lease in tenants)
        if (at.cpus and cpus > machine.cpus) or (at.memory_bytes and memory > machine.memory_bytes):
            self.report(16, "CPUs or memory given twice", f"{request} on {action.agent}: {cpus} of {machine.cpus} CPUs")
        if action.walltime_ms != request.walltime_ms:
            self.report(15, "another walltime than asked", f"{request} gets {action.walltime_ms} ms")

    def _refuse(self, action: act.Refuse, view: View) -> None:
        books = view.books
        request = books.waiting.get(action.request)
        if request is None:
            if books.ended.get(action.request) != "refused":  # whoever asks again hears it again
                known = books.ended.get(action.request, "never submitted")
                self.report(15, "a request ended twice", f"{action.request} is refused, and was {known}")
            return
        if len(str(action.reason)) < 20:
            self.report(15, "a refusal without a reason", f"{request}: {action.reason}")
        wrong = None
        at, qos = request.event, view.tree.qos.get(request.event.qos)
        cost, allowed = books.most_cost(at), books.allowed(at.project, at.user, "gpus")
        allowed_ms = books.allowed(at.project, at.user, "walltime_ms")

        def own(field: str) -> Any:
            return view.tree.rule_of_cells(at.project, field)

        match action.reason:
            case act.TooManyGpus() | act.NoSuchGpu() | act.NoSuchNode() | act.TooLarge() if at.gpus:
                every = [machine for machine in books.machines.values() if machine.is_connected]
                if any(_could_hold(view, request.event, machine.agent) for machine in every):
                    wrong = "a node could hold it"
            case act.WalltimeTooLong() if qos is not None and request.walltime_ms <= max(qos.walltime_ms, allowed_ms):
                wrong = "its class gives as much"
            case act.TooLongForProject() if request.walltime_ms <= max(own("walltime_ms") or 0, allowed_ms):
                wrong = "its project allows as much"
            case act.NotExclusive() if not at.is_exclusive or (qos is not None and qos.can_be_exclusive):
                wrong = "its class gives nodes alone"
            case act.QoSNotAllowed() if own("qos") is None or at.qos in own("qos"):
                wrong = "its project may use it"
            case act.TooManyPerCell() if books.number(at) <= min(
                max(one, allowed) if one else at.gpus for one in (own("gpus_per_cell"), qos and qos.gpus_per_cell)
            ):
                wrong = "a cell may have as many"
            case act.UnknownQoS() if qos is not None:
                wrong = "there is such a class"
            case act.NeverInQuota(homes=()) if view.nominal.get(view.tree.chain(at.project)[0], 0) >= cost:
                wrong = "as much is guaranteed"
            case act.QueueFull() if qos is not None:
                mine = [
                    other
                    for other in books.waiting.values()
                    if (other.event.user, other.event.qos) == (at.user, at.qos)
                ]
                if len(mine) - 1 < qos.queued_per_user:
                    wrong = f"{len(mine) - 1} others of the user wait"
            case _:
                pass
        if wrong:
            self.report(15, "a refusal that is not true", f"{request}: {action.reason} But {wrong}")

    def _take(self, action: act.Reclaim | act.Pause, view: View) -> None:
        victim = view.books.leases.get(action.lease)
        if victim is None or victim.is_reclaimed or victim.is_over:
            return
        qos = view.tree.qos.get(victim.qos)
        if qos is None:
            return
        ran = view.now_ms - victim.began_ms if victim.cell is not None else 0
        if ran < qos.min_runtime_ms and not victim.is_requeued:
            self.report(15, "a cell is taken back before its min_runtime", f"{victim} ran for {ran} ms")
        if isinstance(action, act.Reclaim) and action.right is act.Right.SHARE and ran < runs_ms(victim, qos):
            times = f"{victim} ran for {ran} ms, and went {victim.shared} times before"
            self.report(13, "a cell goes for a share again too soon", times)
        if action.grace_ms != qos.grace_ms:
            self.report(15, "another grace than its class has", f"{victim} has {action.grace_ms} ms")

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Judge whether leases of a lost node were told."""
        if isinstance(event, ev.AgentLost):
            told = {action.lease for action in actions if isinstance(action, act.EndLease)}
            for lease in self._lost:
                if lease not in told:
                    self.report(16, "a lease of a lost node is not told", lease)
            self._lost = []

    def foresee(self, event: ev.Event, view: View) -> None:
        """Remember what a node holds that is lost now."""
        if isinstance(event, ev.AgentLost) and event.agent in view.books.machines:
            self._lost = [lease.lease for lease in view.books.on_node(event.agent) if not lease.is_over]


def _could_hold(view: View, at: ev.RequestSubmitted, agent: str) -> bool:
    machine = view.books.machines[agent]  # type: ignore[index]
    slots = [slot for slot in machine.slots.values() if view.books.matches(at, slot)]
    if not view.books.is_of_size(at, machine):
        return False
    return len(slots) >= view.books.number(at) and at.cpus <= machine.cpus and at.memory_bytes <= machine.memory_bytes
