"""Cells that the notebook waits for: one at a time, in one executor, which keeps what it has of their state."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from secrets import token_hex
from types import ModuleType
from typing import Any, NamedTuple

from IPython.core.interactiveshell import InteractiveShell
from msgspec import structs

from bulletin import state
from bulletin.errors import BulletinError, CellLost, NoPool
from bulletin.ids import CellId, RequestId
from bulletin.state.names import HEARD, users
from bulletin.wire.messages import CellNote
from bulletin_magic.connection.deliveries import CellFinished, LeaseChanged, PoolStatus
from bulletin_magic.connection.resource_spec import LeaseInfo, ResourceSpec
from bulletin_magic.connection.session_events import CellSubmitted
from bulletin_magic.output.cell_outputs import CellOutputs
from bulletin_magic.output.frontend import message_id
from bulletin_magic.output.late_output import LateOutput
from bulletin_magic.output.notes import show_note
from bulletin_magic.output.output_history import OutputHistory
from bulletin_magic.output.output_writer import cell_number
from bulletin_magic.output.receipts import Receipt, receipt_of
from bulletin_magic.running.kernel_shutdown import KernelShutdown
from bulletin_magic.running.outcome import land
from bulletin_magic.running.pool_client import UNDER_WAY, PoolClient
from bulletin_magic.running.shared_state import SharedState

_HEAR = f"__import__('gpu_worker.executor.comms', fromlist=['hear']).hear({HEARD})"


class FinishedRun(NamedTuple):
    """A cell that has ended on the pool: what came of it, what it was sent with, and what its input() raised here."""

    answer: CellFinished
    sent: state.Captured
    input_error: Exception | None


class _RunRecord:
    """What is known of a cell before it has ended."""

    def __init__(self, asked: CellSubmitted, cell: CellOutputs, shown: OutputHistory) -> None:
        self._asked, self._cell, self._shown = asked, cell, shown
        self._asked_ms = self._began_ms = shown.now_ms()
        self._lease: LeaseInfo | None = None

    def began(self, lease: LeaseInfo) -> None:
        """It has been sent."""
        self._lease, self._began_ms = lease, self._shown.now_ms()

    def keep(self, kind: str, message: Mapping[str, Any], size: int) -> None:
        """It has shown something."""
        self._shown.take(self._cell, kind, message, size)

    def receipt(self, number: int) -> Receipt | None:
        """What it has cost, if it is lost now; None where it has not begun."""
        if self._lease is None:
            return None
        return Receipt(
            number=number,
            outcome="lost",
            lease=self._lease,
            ran_ms=self._shown.now_ms() - self._began_ms,
            waited_ms=self._began_ms - self._asked_ms,
            sent_bytes=sum(memoryview(part).nbytes for part in self._asked.parts),
            returned_bytes=0,
        )


class ForegroundRunner:
    """Runs the notebook's cells on its pool. What their executor has already is not sent again."""

    def __init__(
        self,
        shell: InteractiveShell,
        pool: PoolClient,
        echoes: LateOutput,
        *,
        sends: Callable[[str], bool],
        ending: KernelShutdown,
        take_receipt: Callable[[Receipt], None],
        shown: OutputHistory,
    ) -> None:
        """`sends` says whether a text is a whole cell of the notebook."""
        self._shell, self._pool, self._echoes = shell, pool, echoes
        self._sends, self._ending, self._take_receipt = sends, ending, take_receipt
        self._shown = shown
        self._turn = threading.RLock()  # comms may come in threads of their own
        self._is_bringing = False
        self.shared = SharedState()
        #: Of the last cell, and so of the lease, if one is held.
        self.resources: ResourceSpec | None = None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """One cell at a time: it waits for the callback of a widget. Raises NoPool while another thread has a cell."""
        if not self._turn.acquire(blocking=self._is_bringing):
            raise NoPool(*UNDER_WAY)
        try:
            yield
        finally:
            self._turn.release()

    def run(
        self,
        cell: str,
        resources: ResourceSpec,
        check: Callable[[state.Captured], None] | None = None,
        max_wait_ms: int | None = None,
    ) -> FinishedRun:
        """Send the cell with what its executor does not have yet, and wait for its end.

        `check` makes it a call of ours, and may raise because of what would stay behind. Raises BulletinError.
        """
        plan = state.needs(cell, self._shell.user_ns)
        waited_ms, self.resources = 0, resources
        while True:
            left_ms = None if max_wait_ms is None else max(1, max_wait_ms - waited_ms)
            asked, sent = self._ask(cell, plan, resources, check, max_wait_ms=left_ms)
            answer, input_error = self._converse(asked)
            if isinstance(answer, CellFinished):
                return FinishedRun(structs.replace(answer, waited_ms=answer.waited_ms + waited_ms), sent, input_error)
            waited_ms += answer.waited_ms
            self.shared.forget()

    def land(self, ran: FinishedRun, *, has_receipt: bool = True) -> None:
        """Bring what the cell has changed into the notebook, raise what it raised, and give its receipt."""
        try:
            land(ran.answer, ran.sent, self.shared, self._shell)
        except KeyboardInterrupt:
            if ran.input_error is not None:
                raise ran.input_error from None
            raise
        finally:
            if has_receipt:
                self._take_receipt(receipt_of(ran.answer, cell_number(self._shell)))

    def call(
        self, source: str, resources: ResourceSpec, check: Callable[[state.Captured], None], *, has_receipt: bool = True
    ) -> CellFinished:
        """Run a line of ours that calls something of the user's, as a cell; it leaves its results as a cell does."""
        with self.alone():
            ran = self.run(source, resources, check)
            self.land(ran, has_receipt=has_receipt)
        return ran.answer

    def debug(self) -> bool:
        """Debug the last cell in its executor. False where that is not there any more."""
        if self.resources is None or not self._pool.holds_lease(self.shared.lease_id):
            return False
        with self.alone():
            self.land(self.run("%debug", self.resources))
        return True

    def bring(self, message: Mapping[str, Any]) -> bool:
        """Let the twin of a widget hear what its view said; what its callbacks change comes back as from a cell.

        False where the executor that has the twin is not there any more. Waits for a cell that is under way: comms may
        come in threads of their own.
        """
        with self._turn:
            resources = self.resources
            if resources is None or not self._pool.is_connected or not self._pool.holds_lease(self.shared.lease_id):
                return False
            self._is_bringing, namespace = True, self._shell.user_ns
            parts = {key: message[key] for key in ("header", "content", "metadata")}
            header = {key: value for key, value in parts["header"].items() if isinstance(value, str)}
            namespace[HEARD] = {**parts, "header": header, "buffers": [bytes(one) for one in message["buffers"]]}
            try:
                held = self.shared.holdings(namespace, is_kept=True)
                names = [value.name for value in held.values if value.name in namespace]
                names += [name for name in users(namespace) if isinstance(namespace[name], ModuleType)]
                asked, sent = self._ask(_HEAR, state.Needs(reads=(HEARD, *names)), resources, None, is_call=True)
                answer, _ = self._pool.converse(asked)
                if not isinstance(answer, CellFinished):
                    self.shared.forget()
                    return False
                land(answer, sent, self.shared, self._shell)
            except BulletinError as error:
                show_note(self._shell, str(error))
            finally:
                self._is_bringing = False
                namespace.pop(HEARD, None)
        return True

    def join(self, note: CellNote) -> None:
        """Take over a cell that lost its notebook: show what it printed, wait for its end, bring its variables."""
        nothing = state.capture({}, state.needs("", {}))
        self.shared.forget()  # the lease of before is given back
        asked = CellSubmitted(
            cell=note.cell,
            request=RequestId(token_hex(16)),
            source="",
            number=cell_number(self._shell),
            parts=(),
            joins=note.agent,
            stop_after_ms=self._ending.stop_after_ms,
        )
        answer, input_error = self._converse(asked)
        assert isinstance(answer, CellFinished)
        try:
            land(answer, nothing, SharedState(), self._shell)
        except KeyboardInterrupt:
            if input_error is not None:
                raise input_error from None
            raise

    def _converse(self, asked: CellSubmitted) -> tuple[CellFinished | LeaseChanged, Exception | None]:
        """Hold the conversation of a cell of the user's, and keep what it shows."""
        cell = self._shown.begin(asked.cell)
        watch = _RunRecord(asked, cell, self._shown)
        try:
            answer, input_error = self._pool.converse(asked, watch)
            assert isinstance(answer, CellFinished | LeaseChanged)
            if isinstance(answer, CellFinished) and answer.ended.error is not None and not asked.is_call:
                self._shown.fail(cell, answer.ended.error)
        except CellLost as error:
            self._shown.note(cell, str(error))
            receipt = watch.receipt(cell_number(self._shell))
            if receipt is not None:
                self._take_receipt(receipt)
            raise
        finally:
            self._shown.end(cell)
        return answer, input_error

    def is_kept(self, looked: PoolStatus | str | None) -> bool:
        """Whether the executor that has our half of the table is still there, or nobody can say."""
        if isinstance(looked, PoolStatus):
            return looked.lease is not None and looked.lease.lease_id == self.shared.lease_id
        return looked is not None and self.shared.lease_id is not None

    def _ask(
        self,
        cell: str,
        plan: state.Needs,
        resources: ResourceSpec,
        check: Callable[[state.Captured], None] | None,
        *,
        is_call: bool = False,
        max_wait_ms: int | None = None,
    ) -> tuple[CellSubmitted, state.Captured]:
        """The question to the executor that has the rest of the cell's state, and what goes with it."""
        sent = self.shared.capture(self._shell.user_ns, plan)
        if check is not None:
            check(sent)
        name = token_hex(16)
        self._echoes.began(CellId(name))
        asked = CellSubmitted(
            cell=CellId(name),
            request=RequestId(name),
            source=cell,
            number=cell_number(self._shell),
            parts=tuple(sent.parts),
            lease_id=self.shared.lease_id,
            resources=resources,
            message=message_id(self._shell),
            max_wait_ms=max_wait_ms,
            is_call=is_call or check is not None,
            outlives_kernel=self._ending.outlives_kernel,
            stop_after_ms=self._ending.stop_after_ms,
            is_whole=self._sends(cell),
        )
        return asked, sent
