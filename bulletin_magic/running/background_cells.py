"""All background cells of a notebook: started, counted, and brought in when they have ended."""

from collections.abc import Callable
from secrets import token_hex

from IPython.core.interactiveshell import InteractiveShell

from bulletin import state
from bulletin.ids import CellId, RequestId
from bulletin_magic.connection.deliveries import CellFinished
from bulletin_magic.connection.link import Link
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.connection.session_events import CellSubmitted
from bulletin_magic.output.cell_outputs import CellOutputs
from bulletin_magic.output.frontend import message_id
from bulletin_magic.output.output_history import OutputHistory
from bulletin_magic.output.output_writer import cell_number
from bulletin_magic.output.receipts import ReceiptList, receipt_of
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.background import BackgroundCell
from bulletin_magic.running.early_stop import EarlyStop
from bulletin_magic.running.notebook_libraries import NotebookLibraries
from bulletin_magic.running.submission_folder import submission_folder


class BackgroundCells:
    """The background cells of a notebook whose variables have not come yet, oldest first."""

    def __init__(
        self,
        shell: InteractiveShell,
        open_link: Callable[[str], Link],
        comms: WidgetComms,
        history: OutputHistory,
        receipts: ReceiptList,
    ) -> None:
        """Bring in what has ended before each cell from now on. `open_link` opens one to the pool, under a name."""
        self._shell, self._open_link, self._comms, self._history = shell, open_link, comms, history
        self._receipts = receipts
        self._cells: list[BackgroundCell] = []
        self._number = 0
        shell.events.register("pre_run_cell", lambda _: self.apply_finished())

    def start(
        self, source: str, name: str | None, resources: ResourceSpec, max_wait_ms: int | None = None
    ) -> BackgroundCell:
        """Send a cell with the variables as they are now; raises as a cell does that cannot be sent.

        One that waits in the queue for more than `max_wait_ms` ends with WaitedTooLong as its error.
        """
        namespace = self._shell.user_ns
        with EarlyStop():
            needs = state.needs(source, namespace)
            captured = state.capture(namespace, needs, table=state.Table())
        self._number += 1
        link = self._open_link(f"background-{self._number}")
        cell_id = CellId(token_hex(16))
        number = cell_number(self._shell)

        def keep_receipt(finished: CellFinished) -> None:
            self._receipts.keep(receipt_of(finished, number))

        cell = BackgroundCell(cell_id, name, self._number, link, self._shell, self._comms, self._history, keep_receipt)
        meanwhile = state.depart(namespace, captured)
        environment = NotebookLibraries().describe(needs, captured, 0, is_new=True)
        submitted = CellSubmitted(
            cell=cell_id,
            request=RequestId(token_hex(16)),
            source=source,
            number=number,
            parts=tuple(captured.parts),
            resources=resources,
            message=message_id(self._shell),
            max_wait_ms=max_wait_ms,
            folder=submission_folder(),
            versions=environment.versions,
            libraries=environment.libraries,
            absent=environment.absent,
        )
        cell.start(submitted, captured, meanwhile)
        self._cells.append(cell)
        if name is not None:
            namespace[name] = cell
        return cell

    @property
    def running_lines(self) -> list[str]:
        """A line about each that has not ended."""
        return [cell.status for cell in self._cells if not cell.done()]

    def find_showing(self, outputs: CellOutputs) -> BackgroundCell | None:
        """Return the cell that these outputs are of, if it has not ended."""
        return next((cell for cell in self._cells if cell.is_showing(outputs)), None)

    def apply_finished(self) -> None:
        """Bring the variables of those that have ended, in the order in which they were begun."""
        for cell in self._cells:
            cell.apply_if_done()
        self._cells = [cell for cell in self._cells if not cell.done()]

    def detach(self) -> None:
        """Leave the cells to themselves, for another kernel: this one ends."""
        for cell in self._cells:
            cell.detach()

    def close(self) -> None:
        """End all cells: their kernel ends."""
        for cell in self._cells:
            cell.close()
        self._cells.clear()
