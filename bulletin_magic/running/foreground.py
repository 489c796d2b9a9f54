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
from bulletin.codes import CellOutcome
from bulletin.errors import BulletinError, CellLost, NoPool
from bulletin.ids import CellId, RequestId
from bulletin.state.names import HEARD, users
from bulletin.state.reducers.widgets import deliver_view_message
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
from bulletin_magic.output.receipts import LOST, Receipt, receipt_of
from bulletin_magic.running.early_stop import EarlyStop
from bulletin_magic.running.kernel_shutdown import KernelShutdown
from bulletin_magic.running.notebook_libraries import NotebookLibraries
from bulletin_magic.running.outcome import apply_finished
from bulletin_magic.running.pool_client import UNDER_WAY, PoolClient
from bulletin_magic.running.remote_call import source_of_call
from bulletin_magic.running.shared_state import SharedState
from bulletin_magic.running.submission_folder import submission_folder

_DELIVER_VIEW_MESSAGE = source_of_call(deliver_view_message, [HEARD])


class FinishedRun(NamedTuple):
    """A cell that has ended on the pool, and is not applied to the notebook yet."""

    answer: CellFinished
    sent: state.Captured
    input_error: Exception | None  #: what `input()` raised in the notebook; the cell was then interrupted


class _RunRecord:
    """What is known of a cell before it has ended: its lease, its times, its outputs."""

    def __init__(
        self, submitted: CellSubmitted, outputs: CellOutputs, history: OutputHistory, early_stop: EarlyStop
    ) -> None:
        self._submitted, self._outputs, self._history, self._early_stop = submitted, outputs, history, early_stop
        self._submitted_ms = history.now_ms()
        self._sent_ms = self._submitted_ms
        self._lease: LeaseInfo | None = None

    def check_stop(self) -> None:
        """Raise CellStopped where the user has stopped it meanwhile."""
        self._early_stop.raise_if_pressed()

    def cell_sent(self, lease: LeaseInfo) -> None:
        """Note the lease, and that the wait is over."""
        self._early_stop.cell_sent()
        self._lease, self._sent_ms = lease, self._history.now_ms()

    def record(self, kind: str, message: Mapping[str, Any], size: int) -> None:
        """Add what it has shown to the history."""
        self._history.add(self._outputs, kind, message, size)

    def receipt(self, number: int, outcome: CellOutcome | None) -> Receipt | None:
        """Return what it has cost, if it is lost now, for this reason; None where it has not been sent."""
        if self._lease is None:
            return None
        return Receipt(
            number=number,
            outcome=LOST if outcome is None else outcome.value,
            lease=self._lease,
            ran_ms=self._history.now_ms() - self._sent_ms,
            waited_ms=self._sent_ms - self._submitted_ms,
            sent_bytes=sum(memoryview(part).nbytes for part in self._submitted.parts),
            returned_bytes=0,
        )


class ForegroundRunner:
    """Runs the notebook's cells on its pool. What their executor has already is not sent again."""

    def __init__(
        self,
        shell: InteractiveShell,
        pool: PoolClient,
        late_output: LateOutput,
        *,
        is_whole_cell: Callable[[str], bool],
        shutdown: KernelShutdown,
        add_receipt: Callable[[Receipt], None],
        history: OutputHistory,
    ) -> None:
        """`is_whole_cell` tells whether a text is all of the notebook's cell that runs."""
        self._shell, self._pool, self._late_output = shell, pool, late_output
        self._is_whole_cell, self._shutdown, self._add_receipt = is_whole_cell, shutdown, add_receipt
        self._history = history
        self._cell_lock = threading.RLock()  # messages of views may come in threads of their own
        self._is_delivering_view_message = False
        self.shared_state = SharedState()
        self._libraries = NotebookLibraries()
        #: What the last cell asked for, and so what the lease is for, if one is held.
        self.resources: ResourceSpec | None = None

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Run one cell at a time: wait for the callback of a widget. Raises NoPool while another thread has a cell."""
        if not self._cell_lock.acquire(blocking=self._is_delivering_view_message):
            raise NoPool(*UNDER_WAY)
        try:
            yield
        finally:
            self._cell_lock.release()

    def run(
        self,
        cell: str,
        resources: ResourceSpec,
        check: Callable[[state.Captured], None] | None = None,
        max_wait_ms: int | None = None,
    ) -> FinishedRun:
        """Send the cell with what its executor does not have yet, and wait for its end; its results are not applied.

        `check` makes it a call of ours, and may raise because of what would stay behind. Raises BulletinError.
        """
        with EarlyStop() as early_stop:
            needs = state.needs(cell, self._shell.user_ns)
            waited_ms, self.resources = 0, resources
            while True:
                remaining_ms = None if max_wait_ms is None else max(1, max_wait_ms - waited_ms)
                submitted, sent = self._prepare_submission(cell, needs, resources, check, max_wait_ms=remaining_ms)
                early_stop.raise_if_pressed()
                answer, input_error = self._converse(submitted, early_stop)
                if isinstance(answer, CellFinished):
                    answer = structs.replace(answer, waited_ms=answer.waited_ms + waited_ms)
                    return FinishedRun(answer, sent, input_error)
                early_stop.cell_returned()
                waited_ms += answer.waited_ms
                self.shared_state.forget()

    def apply(self, ran: FinishedRun, *, has_receipt: bool = True) -> None:
        """Bring what the cell has changed into the notebook, raise what it raised, and give its receipt."""
        try:
            apply_finished(ran.answer, ran.sent, self.shared_state, self._shell)
        except KeyboardInterrupt:
            if ran.input_error is not None:
                raise ran.input_error from None
            raise
        finally:
            if has_receipt:
                self._add_receipt(receipt_of(ran.answer, cell_number(self._shell)))

    def call(
        self, source: str, resources: ResourceSpec, check: Callable[[state.Captured], None], *, has_receipt: bool = True
    ) -> CellFinished:
        """Run a line of ours that calls something of the user's, as a cell; it leaves its results as a cell does."""
        with self.exclusive():
            ran = self.run(source, resources, check)
            self.apply(ran, has_receipt=has_receipt)
        return ran.answer

    def debug(self) -> bool:
        """Debug the last cell in its executor. False where that has ended."""
        if self.resources is None or not self._pool.holds_lease(self.shared_state.lease_id):
            return False
        with self.exclusive():
            self.apply(self.run("%debug", self.resources))
        return True

    def deliver_view_message(self, message: Mapping[str, Any]) -> bool:
        """Pass what the view of a widget said to its comm in the executor; what callbacks change comes back.

        False where the executor that has the comm has ended. Waits for a cell that is under way: comms may
        come in threads of their own.
        """
        with self._cell_lock:
            resources = self.resources
            is_alive = self._pool.is_connected and self._pool.holds_lease(self.shared_state.lease_id)
            if resources is None or not is_alive:
                return False
            self._is_delivering_view_message = True
            namespace = self._shell.user_ns
            parts = {key: message[key] for key in ("header", "content", "metadata")}
            header = {key: value for key, value in parts["header"].items() if isinstance(value, str)}
            namespace[HEARD] = {**parts, "header": header, "buffers": [bytes(one) for one in message["buffers"]]}
            try:
                holdings = self.shared_state.holdings(namespace, is_executor_alive=True)
                names = [value.name for value in holdings.values if value.name in namespace]
                names += [name for name in users(namespace) if isinstance(namespace[name], ModuleType)]
                submitted, sent = self._prepare_submission(
                    _DELIVER_VIEW_MESSAGE, state.Needs(reads=(HEARD, *names)), resources, None, is_call=True
                )
                answer, _ = self._pool.converse(submitted)
                if not isinstance(answer, CellFinished):
                    self.shared_state.forget()
                    return False
                apply_finished(answer, sent, self.shared_state, self._shell)
            except BulletinError as error:
                show_note(self._shell, str(error))
            finally:
                self._is_delivering_view_message = False
                namespace.pop(HEARD, None)
        return True

    def join(self, note: CellNote) -> None:
        """Take over a cell that lost its notebook: show what it printed, wait for its end, bring its variables."""
        nothing = state.capture({}, state.needs("", {}))
        self.shared_state.forget()  # the lease of before is given back
        submitted = CellSubmitted(
            cell=note.cell,
            request=RequestId(token_hex(16)),
            source="",
            number=cell_number(self._shell),
            parts=(),
            joins=note.agent,
            stop_after_ms=self._shutdown.stop_after_ms,
            folder=submission_folder(),
        )
        answer, input_error = self._converse(submitted, EarlyStop())
        assert isinstance(answer, CellFinished)
        try:
            apply_finished(answer, nothing, SharedState(), self._shell)
        except KeyboardInterrupt:
            if input_error is not None:
                raise input_error from None
            raise

    def _converse(
        self, submitted: CellSubmitted, early_stop: EarlyStop
    ) -> tuple[CellFinished | LeaseChanged, Exception | None]:
        """Hold the conversation of a cell of the user's, and keep what it shows."""
        outputs = self._history.begin(submitted.cell)
        record = _RunRecord(submitted, outputs, self._history, early_stop)
        try:
            answer, input_error = self._pool.converse(submitted, record)
            assert isinstance(answer, CellFinished | LeaseChanged)
            if isinstance(answer, CellFinished) and answer.ended.error is not None and not submitted.is_call:
                self._history.add_error(outputs, answer.ended.error)
        except CellLost as error:
            self._history.add_note(outputs, str(error))
            receipt = record.receipt(cell_number(self._shell), error.outcome)
            if receipt is not None:
                self._add_receipt(receipt)
            raise
        finally:
            self._history.end(outputs)
        return answer, input_error

    def is_executor_alive(self, status: PoolStatus | str | None) -> bool:
        """Tell whether the executor that shares our state lives, or nobody can say.

        `status` is what `PoolClient.query_status` returned.
        """
        if isinstance(status, PoolStatus):
            return status.lease is not None and status.lease.lease_id == self.shared_state.lease_id
        return status is not None and self.shared_state.lease_id is not None

    def _prepare_submission(
        self,
        cell: str,
        needs: state.Needs,
        resources: ResourceSpec,
        check: Callable[[state.Captured], None] | None,
        *,
        is_call: bool = False,
        max_wait_ms: int | None = None,
    ) -> tuple[CellSubmitted, state.Captured]:
        """Capture what the cell needs and its executor has not; return what to submit, and what was captured."""
        sent = self.shared_state.capture(self._shell.user_ns, needs)
        is_new = self.shared_state.lease_id is None
        environment = self._libraries.describe(needs, sent, self._pool.folder_limits.library_bytes, is_new=is_new)
        if check is not None:
            check(sent)
        name = token_hex(16)
        self._late_output.remember_request(CellId(name))
        submitted = CellSubmitted(
            cell=CellId(name),
            request=self._pool.name_request(name),
            source=cell,
            number=cell_number(self._shell),
            parts=tuple(sent.parts),
            lease_id=self.shared_state.lease_id,
            resources=resources,
            message=message_id(self._shell),
            max_wait_ms=max_wait_ms,
            is_call=is_call or check is not None,
            outlives_kernel=self._shutdown.outlives_kernel,
            stop_after_ms=self._shutdown.stop_after_ms,
            is_whole=self._is_whole_cell(cell),
            folder=submission_folder(),
            versions=environment.versions,
            libraries=environment.libraries,
            absent=environment.absent,
        )
        return submitted, sent
