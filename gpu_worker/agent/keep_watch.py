"""A session that keeps its slots between cells: until when, and what the broker is told meanwhile.

To the broker the time between two cells is a cell of its own: it is in quota, it is charged, and nobody takes the
slots. It begins before the end of the cell before it is told, so that the session is not hot in between.
"""

from collections.abc import Awaitable, Callable

from msgspec import structs

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import CellId
from bulletin.kept_time import LABEL, make_kept_cell
from bulletin.units import MINUTE_MS, show_duration
from bulletin.wire import messages as wire
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.end_reasons import EndReason
from gpu_worker.agent.executor_shutdown import ExecutorShutdown
from gpu_worker.agent.session_kernel import SessionKernel
from gpu_worker.agent.session_reports import cell_began

#: After so many times `Pool.away` of silence, a kernel that keeps slots is gone.
_GONE = 6
#: A kernel may take so much longer to take the results of its last cell. It has them all, or never will.
_LATE_MS = MINUTE_MS
#: So long before the slots are given up the notebook is told, where they are kept for twice as long.
_WARN_MS = 5 * MINUTE_MS
#: A shorter time between two cells is told as part of the second: a notebook that runs cell after cell fills no ledger.
_WORTH_MS = 1_000


class KeepWatch:
    """Owns the time between the cells of one session. All times are of the agent's clock, in milliseconds."""

    def __init__(
        self,
        prepare: wire.Prepare,
        tell: Callable[[wire.Message], Awaitable[None]],
        clock: Callable[[], int] = now_ms,
    ) -> None:
        """Take `tell`, which tells the broker: it may be gone, and is told later then."""
        self._keep_ms, self._walltime_ms, self._tell = prepare.keep_ms, prepare.walltime_ms, tell
        self._clock = clock
        self._ends_ms = self._clock() + prepare.walltime_ms
        self._cell: CellId | None = None
        self._since_ms = 0
        self.before: CellId | None = None  #: the notebook's cell that ended last: what it is told stands below that
        self._is_warned = False
        self.more_ms = 0  #: that an admin gave the place in all, beside its walltime
        #: The session ended while no cell ran, and its slots were kept.
        self.was_keeping = False

    @property
    def is_keeping(self) -> bool:
        """Whether the slots are kept now, and no cell runs."""
        return self._cell is not None

    @property
    def is_over(self) -> bool:
        """Whether the notebook asked to keep its slots, and has had them for all of its time."""
        return self._keep_ms > 0 and self._clock() >= self._ends_ms

    @property
    def walltime_ms(self) -> int:
        """How long a cell that begins now may run: of a lease that is kept, what is left of its time."""
        return max(1, self._ends_ms - self._clock()) if self._keep_ms else self._walltime_ms

    async def begin_at_once(self, prepare: wire.Prepare) -> None:
        """Keep the slots for a notebook that is yet to come, if that was asked for."""
        if prepare.keep_at_once:
            await self.begin(prepare, None)

    async def begin(self, prepare: wire.Prepare, before: CellId | None) -> None:
        """Keep the slots from now on, if that was asked for; `before` is the cell that has just ended."""
        self.before, self._is_warned = before, False
        if self._keep_ms and not self.is_over:
            self._cell, self._since_ms = make_kept_cell(), self._clock()
            await self._tell(wire.CellBegan(lease=prepare.lease, cell=self._cell, clock_ms=self._since_ms))

    async def pass_on(self, prepare: wire.Prepare, cell: AgentCell) -> None:
        """Let a cell have the slots that are kept, and tell so; the time before is its own where that was too short."""
        kept, self._cell = self._cell, None
        since_ms = self._since_ms  # the cell may be over, and the slots be kept again, while the broker is told
        is_short = cell.started_ms - since_ms < _WORTH_MS
        if is_short:
            cell.held_since_ms = since_ms
        await self._tell(cell_began(prepare, cell))
        if kept is not None and not is_short:
            await self._tell_kept(prepare, kept, since_ms, cell.started_ms)

    async def end(self, prepare: wire.Prepare) -> None:
        """Tell what the time since the last cell was, if the slots are kept: the session ends."""
        kept, self._cell = self._cell, None
        if kept is not None:
            self.was_keeping = True
            await self._tell_kept(prepare, kept, self._since_ms, self._clock())

    def extend(self, more_ms: int) -> bool:
        """Let slots that are kept be had for so much `more_ms` than their walltime; whether that is news.

        That is for all of their cells and the time between them, whichever of these was given it.
        """
        if not self._keep_ms or more_ms <= self.more_ms or self.is_over:
            return False
        self._ends_ms, self.more_ms, self._is_warned = self._ends_ms + more_ms - self.more_ms, more_ms, False
        return True

    async def _tell_kept(self, prepare: wire.Prepare, cell: CellId, since_ms: int, until_ms: int) -> None:
        said_ms = self._clock()
        await self._tell(
            wire.CellDone(
                lease=prepare.lease,
                session=prepare.session,
                cell=cell,
                user=prepare.user,
                project=prepare.project,
                qos=prepare.qos,
                slots=prepare.slots,
                label=LABEL,
                usage=wire.CellUsage(outcome=CellOutcome.KEPT, ran_ms=0, held_ms=until_ms - since_ms),
                ended_ago_ms=said_ms - until_ms,
                clock_ms=said_ms,
            )
        )

    def add_to(self, held: wire.HeldLease) -> wire.HeldLease:
        """Return what a broker that was restarted is told of the lease: that it is kept, where it is."""
        if self._keep_ms:
            held = structs.replace(held, more_ms=self.more_ms)
        if self._cell is None:
            return held
        return structs.replace(held, cell=self._cell, running_ms=self._clock() - self._since_ms)

    async def check(self, kernel: SessionKernel, shutdown: ExecutorShutdown, *, is_evictable: bool) -> None:
        """Give the slots up that were kept for as long as they may be, or whose kernel is gone; warn it before.

        While the kernel has not taken its last results (not `is_evictable`), they are kept a little longer.
        """
        is_late = self._clock() >= self._over_ms + _LATE_MS
        if self._cell is None or shutdown.reason is not None or not (is_evictable or is_late):
            return
        end = self._find_end(is_kernel_gone=kernel.has_come and kernel.is_silent_for(_GONE))
        if end is not None:
            shutdown.begin(*end)
        notice = self._take_notice(end)
        if notice is not None:
            await kernel.tell(notice)

    @property
    def _over_ms(self) -> int:
        """When slots that are kept are given up, unless a cell comes."""
        return min(self._ends_ms, self._since_ms + self._keep_ms)

    def _take_notice(self, end: tuple[EndReason, str] | None) -> wire.Notice | None:
        """Take what the notebook is to be told now, once each: that its place goes soon, and that it is gone."""
        left_ms = self._over_ms - self._clock()
        if self.before is None:
            return None
        if end is not None:
            return wire.Notice(
                cell=self.before, sentence=f"{end[1]} Its place was given back; the next cell asks for one."
            )
        if self._is_warned or left_ms > min(_WARN_MS, self._keep_ms // 2):
            return None
        self._is_warned = True
        return wire.Notice(
            cell=self.before,
            sentence=f"The place that this notebook keeps is given back in {show_duration(left_ms)}, unless a cell "
            "runs there before that.",
        )

    def _find_end(self, *, is_kernel_gone: bool) -> tuple[EndReason, str] | None:
        """Find why slots that are kept are given up now, with a sentence for who kept them; None while they are not."""
        if is_kernel_gone:
            return LeaseEnd.KERNEL_GONE, ""
        if self.is_over:
            all_of_it = show_duration(self._walltime_ms + self.more_ms)
            return LeaseEnd.KEEP_OVER, f"This notebook has had its place for {all_of_it}, which is all of its time."
        if self._clock() - self._since_ms >= self._keep_ms:
            return LeaseEnd.KEEP_OVER, f"No cell of this notebook has run for {show_duration(self._keep_ms)}."
        return None
