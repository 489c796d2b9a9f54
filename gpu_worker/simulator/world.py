"""A pool in virtual time: the scheduler that a broker runs, synthetic nodes, and kernels that play a trace."""

from heapq import heappop, heappush
from itertools import count
from typing import Literal, assert_never

import msgspec

from bulletin.ids import CellId, LeaseId, ProjectId, RequestId, SessionId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Grant
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.projects import SchedulerSettings
from gpu_worker.simulator.curves import Curve
from gpu_worker.simulator.nodes import Begin, Delays, Leave, Nodes, Outcome, TakeBack, Tell, Turned
from gpu_worker.traces import Notebook, Trace

#: The width of the curves' bins.
WIDTH_MS = 30 * 60_000
_DAY_MS = 24 * 60 * 60_000
#: When the trace begins by the scheduler's clock, which counts from 1970: on the first Monday, as weeks do.
START_MS = 4 * _DAY_MS
#: If nothing but the passing of time happens for so long, who waits will wait for ever: no budget is for longer.
PATIENCE_MS = 62 * _DAY_MS
End = Literal["returned", "walltime", "refused", "lost"]


class Played(msgspec.Struct):
    """One cell of the trace, as it went."""

    cell: CellId
    user: UserName
    project: ProjectId
    qos: str
    gpus: int
    submitted_ms: int
    started_ms: int | None = None  #: None while it waits, and where it was refused
    ended_ms: int | None = None  #: None while it waits or runs
    end: End | None = None
    was_hot: bool = False  #: it began without a request, on the GPUs that its session had
    reclaims: int = 0  #: how often it was ended for an owner, to run again

    @property
    def wait_ms(self) -> int | None:
        """From its submission until its code began to run; None for a cell that did not begin."""
        return None if self.started_ms is None else self.started_ms - self.submitted_ms


class Kernel(msgspec.Struct):
    """An open notebook: how far it is, and what it has of the pool."""

    notebook: Notebook
    next: int = 0
    under_way: Played | None = None
    lease: LeaseId | None = None
    qos: str | None = None  #: in which it has its lease


class Open(msgspec.Struct, frozen=True):
    """A notebook is opened."""

    notebook: Notebook


class Submit(msgspec.Struct, frozen=True):
    """A notebook's next cell is submitted."""

    session: SessionId


class Finish(msgspec.Struct, frozen=True):
    """A cell that runs in a lease has come to its end, or to its walltime."""

    lease: LeaseId
    cell: CellId
    end: End


class Close(msgspec.Struct, frozen=True):
    """A notebook is closed, and gives back what it has."""

    session: SessionId


class Look(msgspec.Struct, frozen=True):
    """The scheduler asked for a Tick."""


Happening = Open | Submit | Begin | Finish | Leave | TakeBack | Close | Tell | Turned | Look


class World:
    """Plays one trace once. The same trace, nodes and settings give the same run, to the last millisecond."""

    def __init__(
        self,
        trace: Trace,
        sizes: tuple[int, ...],
        settings: SchedulerSettings | None = None,
        delays: Delays | None = None,
    ) -> None:
        self.scheduler = Scheduler(settings)
        self.nodes = Nodes(sizes, delays or Delays(), WIDTH_MS)
        self.trace = trace
        self.played: list[Played] = []
        self.waiting, self.opened = Curve(WIDTH_MS), Curve(WIDTH_MS)
        self.steps = 0
        self.now_ms = 0
        self._kernels: dict[SessionId, Kernel] = {}
        self._wishes: dict[RequestId, Kernel] = {}
        self._heap: list[tuple[int, int, Happening]] = []
        self._seq = count()  # what happens at the same time happens in the order in which it was known
        self._look_ms: int | None = None
        self._others = 0  # planned happenings that are more than a look
        self._moved_ms = 0  # when the last of those was

    def run(self, until_ms: int | None = None) -> None:
        """Play on until nothing is left to happen, or up to a time. May be called again."""
        if not self.steps:
            for joined in self.nodes.join():
                self.tell(joined)
            for notebook in self.trace.notebooks:
                self._plan(notebook.opened_ms, Open(notebook))
        while self._heap and (until_ms is None or self._heap[0][0] <= until_ms):
            at_ms, _, happening = heappop(self._heap)
            if isinstance(happening, Look) and at_ms != self._look_ms:
                continue  # it was put off, or nothing is due any more
            if not isinstance(happening, Look):
                self._others -= 1
                self._moved_ms = at_ms
            elif not self._others and (not self._kernels or at_ms > self._moved_ms + PATIENCE_MS):
                break
            self.now_ms = at_ms
            self._happen(happening)
        self.now_ms = max(self.now_ms, until_ms or 0)
        for curve in (self.nodes.leased, self.nodes.busy, self.waiting, self.opened):
            curve.advance(self.now_ms)

    def _plan(self, at_ms: int, happening: Happening) -> None:
        self._others += not isinstance(happening, Look)
        heappush(self._heap, (at_ms, next(self._seq), happening))

    def _happen(self, happening: Happening) -> None:
        match happening:
            case Submit():
                self._submit(self._kernels[happening.session])
            case Begin():
                self._begin(happening.lease)
            case Finish():
                self._finish(happening.lease, happening.cell, happening.end)
            case TakeBack():
                self._follow(self.nodes.take_back(happening.lease))
            case Leave():
                self._leave(happening.lease)
            case Open():
                self._open(happening.notebook)
            case Close():
                self._close(self._kernels.pop(happening.session))
            case Tell():
                self.tell(happening.event)
            case Turned():
                self._turn_away(self._wishes.pop(happening.action.request))
            case Look():
                self._look_ms = None
                self.tell(ev.Tick())
            case _:
                assert_never(happening)

    # The scheduler

    def tell(self, event: ev.Event) -> None:
        """Let the scheduler note a fact now, and do what it says. Facts beyond the trace are told between two runs."""
        self.steps += 1
        for action in self.scheduler.step(event, START_MS + self.now_ms):
            if isinstance(action, Grant) and action.request in self._wishes:
                kernel = self._wishes.pop(action.request)
                assert kernel.under_way is not None, "a kernel wishes for a cell"
                kernel.lease, kernel.qos = action.lease, kernel.under_way.qos
            self._follow(self.nodes.perform(action, self.now_ms))
        due_ms = self.scheduler.deadline()
        due_ms = None if due_ms is None else max(due_ms - START_MS, self.now_ms)
        if due_ms != self._look_ms:
            self._look_ms = due_ms
            if due_ms is not None:
                self._plan(due_ms, Look())

    def _follow(self, outcomes: list[Outcome]) -> None:
        for delay_ms, happening in outcomes:
            self._plan(self.now_ms + delay_ms, happening)

    # Notebooks

    def _open(self, notebook: Notebook) -> None:
        self._kernels[notebook.session] = Kernel(notebook)
        self.opened.add(notebook.gpus, self.now_ms)
        self._go_on(self._kernels[notebook.session], notebook.first_ms)

    def _go_on(self, kernel: Kernel, after_ms: int) -> None:
        session = kernel.notebook.session
        is_over = kernel.next == len(kernel.notebook.cells)
        self._plan(self.now_ms + after_ms, Close(session) if is_over else Submit(session))

    def _close(self, kernel: Kernel) -> None:
        self.opened.add(-kernel.notebook.gpus, self.now_ms)
        if kernel.lease is not None:
            self._follow(self.nodes.leave(kernel.lease))

    def _submit(self, kernel: Kernel) -> None:
        notebook = kernel.notebook
        cell = notebook.cells[kernel.next]
        kernel.under_way = played = Played(
            CellId(f"{notebook.session}.{kernel.next}"),
            notebook.user,
            notebook.project,
            cell.qos,
            cell.gpus,
            self.now_ms,
        )
        self.played.append(played)
        tenant = self.nodes.tenants[kernel.lease] if kernel.lease is not None else None
        if tenant is not None and not tenant.is_leaving and (len(tenant.slots), kernel.qos) == (cell.gpus, cell.qos):
            self.nodes.begin_hot(tenant.lease, self.now_ms)
            played.was_hot = True
            self._start(kernel, played, tenant.lease, self.nodes.delays.hot_ms)
            return
        self._ask(kernel, played)

    def _ask(self, kernel: Kernel, played: Played) -> None:
        """Ask for a lease. Each run of a cell is a request of its own."""
        notebook, cell = kernel.notebook, kernel.notebook.cells[kernel.next]
        name = played.cell if not played.reclaims else f"{played.cell}-{played.reclaims}"
        request = RequestId(f"r-{name}")
        self._wishes[request] = kernel
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
        if lease not in self.nodes.tenants or self.nodes.tenants[lease].is_leaving:
            return
        kernel = self._kernels[self.nodes.tenants[lease].session]
        assert kernel.under_way is not None, "a lease is granted to a cell that waits"
        self.waiting.add(-1, self.now_ms)
        self._start(kernel, kernel.under_way, lease, 0)

    def _start(self, kernel: Kernel, played: Played, lease: LeaseId, after_ms: int) -> None:
        """The agent takes the cell, and tells the broker; the user's code runs a moment later."""
        played.started_ms = self.now_ms + after_ms
        run_ms = kernel.notebook.cells[kernel.next].run_ms
        walltime_ms = self.nodes.tenants[lease].walltime_ms
        end: End = "returned" if run_ms <= walltime_ms else "walltime"
        self._plan(played.started_ms + min(run_ms, walltime_ms), Finish(lease, played.cell, end))
        self.tell(ev.CellStarted(lease, played.cell))

    def _finish(self, lease: LeaseId, cell: CellId, end: End) -> None:
        if lease not in self.nodes.tenants or self.nodes.tenants[lease].is_leaving:
            return  # it is lost
        self.nodes.end_cell(lease, self.now_ms)
        self._over(self._kernels[self.nodes.tenants[lease].session], end)
        self.tell(ev.CellEnded(lease, cell))
        tenant = self.nodes.tenants.get(lease)
        if tenant is not None and tenant.is_wanted:
            self._follow(self.nodes.leave(lease))

    def _leave(self, lease: LeaseId) -> None:
        tenant = self.nodes.end_lease(lease, self.now_ms)
        kernel = self._kernels.get(tenant.session)
        if kernel is not None and kernel.lease == lease:
            kernel.lease = None
            if tenant.has_cell and tenant.is_taken:
                assert kernel.under_way is not None, "it is the tenant's cell"
                self.tell(ev.LeaseEnded(lease))
                self._again(kernel, kernel.under_way)
                return
            if tenant.has_cell:
                assert kernel.under_way is not None, "it is the tenant's cell"
                self.waiting.add(-(kernel.under_way.started_ms is None), self.now_ms)
                self._over(kernel, "lost")
        self.tell(ev.LeaseEnded(lease))

    def _again(self, kernel: Kernel, played: Played) -> None:
        """A cell that was reclaimed runs again from its beginning."""
        played.started_ms = None
        played.reclaims += 1
        self._ask(kernel, played)

    def _turn_away(self, kernel: Kernel) -> None:
        self.waiting.add(-1, self.now_ms)
        self._over(kernel, "refused")

    def _over(self, kernel: Kernel, end: End) -> None:
        """The cell under way is over, and its user thinks about the next one."""
        assert kernel.under_way is not None, "a cell ends once"
        kernel.under_way.ended_ms, kernel.under_way.end = self.now_ms, end
        kernel.under_way = None
        kernel.next += 1
        self._go_on(kernel, kernel.notebook.cells[kernel.next - 1].think_ms)


def divide(gpus: int, nodes: int) -> tuple[int, ...]:
    """So many GPUs on so many nodes, as evenly as can be, the larger nodes first."""
    return tuple(gpus // nodes + (at < gpus % nodes) for at in range(nodes))
