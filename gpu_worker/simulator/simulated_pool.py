"""A pool in virtual time: the scheduler that a broker runs, simulated nodes, and kernels that play a trace."""

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import assert_never

import msgspec

from bulletin.ids import CellId, LeaseId, RequestId, SessionId
from bulletin.units import DAY_MS
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Grant
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from gpu_worker.simulator.curves import Curve
from gpu_worker.simulator.played_cells import PlayedCell, PlayedOutcome
from gpu_worker.simulator.policies import Policies
from gpu_worker.simulator.simulated_nodes import (
    AgentReport,
    DelayedOutcome,
    Delays,
    ExecutorReady,
    GraceOver,
    NodeFault,
    RequestRefused,
    SimulatedNodes,
    SlotsFreed,
)
from gpu_worker.simulator.simulation_events import (
    NodeFaultBegun,
    NodeFaultOver,
    SimulationEvent,
    TickDue,
    TraceCellFinished,
    TraceCellSubmitted,
    TraceNotebookClosed,
    TraceNotebookOpened,
)
from gpu_worker.simulator.traces import Trace, TraceNotebook

#: The width of the curves' bins.
WIDTH_MS = 30 * 60_000
#: When the trace begins by the scheduler's clock, which counts from 1970: on the first Monday, as weeks do.
START_MS = 4 * DAY_MS
#: If nothing but the passing of time happens for so long, who waits will wait for ever: no budget is for longer.
PATIENCE_MS = 62 * DAY_MS


class SimulatedKernel(msgspec.Struct):
    """The kernel of an open notebook: which cell is next, which is under way, and the lease that it has."""

    notebook: TraceNotebook
    next: int = 0
    under_way: PlayedCell | None = None
    lease: LeaseId | None = None
    qos: str | None = None  #: in which it has its lease


class SimulatedPool:
    """Plays one trace once. The same trace, nodes and settings give the same run, to the last millisecond."""

    def __init__(
        self,
        trace: Trace,
        sizes: tuple[int, ...],
        settings: SchedulerSettings | None = None,
        delays: Delays | None = None,
        *,
        faults: Sequence[NodeFault] = (),
        policies: Policies | None = None,
        start_ms: int = START_MS,
    ) -> None:
        """Take when the trace begins by the scheduler's clock: class hours and reservations go by it."""
        self._start_ms = start_ms
        self.scheduler = Scheduler(settings)
        self.policies = policies or Policies()
        self.nodes = SimulatedNodes(sizes, delays or Delays(), WIDTH_MS, self.policies.residents)
        self.trace = trace
        self.faults = faults
        self.played: list[PlayedCell] = []
        self.waiting = Curve(WIDTH_MS)
        self.steps = 0
        self.now_ms = 0
        self._kernels: dict[SessionId, SimulatedKernel] = {}
        self._requested: dict[RequestId, SimulatedKernel] = {}
        self._heap: list[tuple[int, int, SimulationEvent]] = []
        self._seq = count()  # what happens at the same time happens in the order in which it was known
        self._tick_ms: int | None = None
        self._others = 0  # planned events other than TickDue
        self._last_event_ms = 0  # when the last of those was

    def run(self, until_ms: int | None = None) -> None:
        """Play on until nothing is left to happen, or up to a time. May be called again."""
        if not self.steps:
            for joined in self.nodes.join():
                self.tell(joined)
            for notebook in self.trace.notebooks:
                self._plan(notebook.opened_ms, TraceNotebookOpened(notebook))
            for fault in self.faults:
                self._plan(fault.at_ms, NodeFaultBegun(fault))
                if fault.back_ms is not None:
                    self._plan(fault.back_ms, NodeFaultOver(fault))
        while self._heap and (until_ms is None or self._heap[0][0] <= until_ms):
            at_ms, _, event = heappop(self._heap)
            if isinstance(event, TickDue) and at_ms != self._tick_ms:
                continue  # it was put off, or nothing is due any more
            if not isinstance(event, TickDue):
                self._others -= 1
                self._last_event_ms = at_ms
            elif not self._others and (not self._kernels or at_ms > self._last_event_ms + PATIENCE_MS):
                break
            self.now_ms = at_ms
            self._handle(event)
            self._keep_reserve()
        self.now_ms = max(self.now_ms, until_ms or 0)
        for curve in (self.nodes.leased, self.nodes.busy, self.waiting):
            curve.advance(self.now_ms)

    def _plan(self, at_ms: int, event: SimulationEvent) -> None:
        if not isinstance(event, TickDue):
            self._others += 1
        heappush(self._heap, (at_ms, next(self._seq), event))

    def _handle(self, event: SimulationEvent) -> None:
        match event:
            case TraceCellSubmitted():
                self._submit(self._kernels[event.session])
            case ExecutorReady():
                self._begin(event.lease)
            case TraceCellFinished():
                self._finish(event.lease, event.cell, event.end)
            case GraceOver():
                self._follow(self.nodes.end_grace(event.lease))
            case SlotsFreed():
                self._leave(event.lease)
            case TraceNotebookOpened():
                self._open(event.notebook)
            case TraceNotebookClosed():
                self._close(self._kernels.pop(event.session))
            case AgentReport():
                self.tell(event.event)
            case RequestRefused():
                self._refuse(self._requested.pop(event.action.request))
            case NodeFaultBegun():
                self.tell(self.nodes.lose(event.fault.node))
            case NodeFaultOver():
                self.tell(self.nodes.rejoin(event.fault.node))
            case TickDue():
                self._tick_ms = None
                self.tell(ev.Tick())
            case _:
                assert_never(event)

    # What the scheduler is told and says

    def tell(self, event: ev.Event) -> None:
        """Let the scheduler note a fact now, and do what it says. Facts beyond the trace are told between two runs.

        Plans the next Tick where the scheduler's deadline has changed.
        """
        self.steps += 1
        for action in self.scheduler.step(event, self._start_ms + self.now_ms):
            if isinstance(action, Grant) and action.request in self._requested:
                kernel = self._requested.pop(action.request)
                assert kernel.under_way is not None, "a kernel asks for a lease for a cell"
                kernel.lease, kernel.qos = action.lease, kernel.under_way.qos
            self._follow(self.nodes.perform(action, self.now_ms))
        due_ms = self.scheduler.deadline()
        due_ms = None if due_ms is None else max(due_ms - self._start_ms, self.now_ms)
        if due_ms != self._tick_ms:
            self._tick_ms = due_ms
            if due_ms is not None:
                self._plan(due_ms, TickDue())

    def _follow(self, outcomes: list[DelayedOutcome]) -> None:
        for delay_ms, event in outcomes:
            self._plan(self.now_ms + delay_ms, event)

    # Experiments

    def _keep_reserve(self) -> None:
        """Let hot sessions leave before anybody asks, until as many GPUs are free, or soon will be, as are wanted."""
        while self.policies.reserve and self.nodes.hot:
            if self.nodes.free + self.nodes.leaving >= self.policies.reserve:
                return
            self._follow(self.nodes.evict_hot())

    # What notebooks do

    def _open(self, notebook: TraceNotebook) -> None:
        self._kernels[notebook.session] = SimulatedKernel(notebook)
        self._go_on(self._kernels[notebook.session], notebook.first_ms)

    def _go_on(self, kernel: SimulatedKernel, after_ms: int) -> None:
        session = kernel.notebook.session
        is_over = kernel.next == len(kernel.notebook.cells)
        self._plan(self.now_ms + after_ms, TraceNotebookClosed(session) if is_over else TraceCellSubmitted(session))

    def _close(self, kernel: SimulatedKernel) -> None:
        if kernel.lease is not None:
            self._follow(self.nodes.leave(kernel.lease))
        self.nodes.forget(kernel.notebook.session)

    def _submit(self, kernel: SimulatedKernel) -> None:
        notebook = kernel.notebook
        cell = notebook.cells[kernel.next]
        kernel.under_way = played = PlayedCell(
            CellId(f"{notebook.session}.{kernel.next}"),
            notebook.user,
            notebook.project,
            cell.qos,
            cell.gpus,
            self.now_ms,
        )
        self.played.append(played)
        held = self.nodes.leases[kernel.lease] if kernel.lease is not None else None
        if held is not None and not held.is_leaving and (len(held.slots), kernel.qos) == (cell.gpus, cell.qos):
            begins_ms = self.nodes.begin_hot(held.lease, self.now_ms)
            played.was_hot = True
            self._start(kernel, played, held.lease, begins_ms)
            return
        self._ask(kernel, played)

    def _ask(self, kernel: SimulatedKernel, played: PlayedCell) -> None:
        """Ask for a lease. Each run of a cell is a request of its own."""
        notebook, cell = kernel.notebook, kernel.notebook.cells[kernel.next]
        name = played.cell if not played.reclaims else f"{played.cell}-{played.reclaims}"
        request = RequestId(f"r-{name}")
        self._requested[request] = kernel
        self.waiting.add(+1, self.now_ms)
        self.tell(
            ev.RequestSubmitted(
                request=request,
                lease=LeaseId(f"l-{name}"),
                session=notebook.session,
                user=notebook.user,
                project=notebook.project,
                qos=cell.qos,
                gpus=cell.gpus,
                walltime_ms=cell.walltime_ms,
            )
        )

    def _begin(self, lease: LeaseId) -> None:
        if lease not in self.nodes.leases or self.nodes.leases[lease].is_leaving:
            return
        kernel = self._kernels[self.nodes.leases[lease].session]
        assert kernel.under_way is not None, "a lease is granted to a cell that waits"
        self.waiting.add(-1, self.now_ms)
        self._start(kernel, kernel.under_way, lease, 0)

    def _start(self, kernel: SimulatedKernel, played: PlayedCell, lease: LeaseId, after_ms: int) -> None:
        """Let the agent take the cell and tell the scheduler, and plan the cell's end.

        The user's code begins to run `after_ms` later, and runs for its walltime at most.
        """
        played.started_ms = self.now_ms + after_ms
        played.was_warm = self.nodes.leases[lease].is_warm
        run_ms = kernel.notebook.cells[kernel.next].run_ms
        walltime_ms = self.nodes.leases[lease].walltime_ms
        end: PlayedOutcome = "returned" if run_ms <= walltime_ms else "walltime"
        self._plan(played.started_ms + min(run_ms, walltime_ms), TraceCellFinished(lease, played.cell, end))
        self.tell(ev.CellStarted(lease, played.cell))

    def _finish(self, lease: LeaseId, cell: CellId, end: PlayedOutcome) -> None:
        if lease not in self.nodes.leases or self.nodes.leases[lease].is_leaving:
            return  # it is lost
        self.nodes.end_cell(lease, self.now_ms)
        self._over(self._kernels[self.nodes.leases[lease].session], end)
        self.tell(ev.CellEnded(lease, cell))
        held = self.nodes.leases.get(lease)
        if held is not None and held.is_wanted:
            self._follow(self.nodes.leave(lease))

    def _leave(self, lease: LeaseId) -> None:
        held = self.nodes.end_lease(lease, self.now_ms)
        kernel = self._kernels.get(held.session)
        if kernel is not None and kernel.lease == lease:
            kernel.lease = None
            if held.has_cell and held.is_taken:
                assert kernel.under_way is not None, "it is the cell of this lease"
                self.tell(ev.LeaseEnded(lease))
                self._again(kernel, kernel.under_way)
                return
            if held.has_cell:
                assert kernel.under_way is not None, "it is the cell of this lease"
                if kernel.under_way.started_ms is None:
                    self.waiting.add(-1, self.now_ms)
                self._over(kernel, "lost")
        self.tell(ev.LeaseEnded(lease))

    def _again(self, kernel: SimulatedKernel, played: PlayedCell) -> None:
        """Ask again for a cell that was reclaimed: it runs from its beginning."""
        played.started_ms = None
        played.reclaims += 1
        self._ask(kernel, played)

    def _refuse(self, kernel: SimulatedKernel) -> None:
        self.waiting.add(-1, self.now_ms)
        self._over(kernel, "refused")

    def _over(self, kernel: SimulatedKernel, end: PlayedOutcome) -> None:
        """Record how the cell under way ended; its user then thinks before submitting the next one."""
        assert kernel.under_way is not None, "a cell ends once"
        kernel.under_way.ended_ms, kernel.under_way.end = self.now_ms, end
        kernel.under_way = None
        kernel.next += 1
        self._go_on(kernel, kernel.notebook.cells[kernel.next - 1].think_ms)


def divide_gpus(gpus: int, nodes: int) -> tuple[int, ...]:
    """Return how many GPUs each node has, as evenly as can be, the larger nodes first."""
    each, left_over = divmod(gpus, nodes)
    return tuple(each + 1 if at < left_over else each for at in range(nodes))
