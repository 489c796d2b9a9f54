"""What `%gpu` and each of its verbs do."""

import time
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from bulletin import state
from bulletin.errors import BadOption, BulletinError, NotDone, Refused, StayedBehind
from bulletin.ids import SHORT
from bulletin.state.handles import LOST
from bulletin.state.holdings import Home
from bulletin.state.names import OUTCOME
from bulletin.units import show_duration
from bulletin.wire.messages.allowance_requests import AllowanceQuestion, AllowanceReport, AskAllowances
from bulletin_magic.commands import pull
from bulletin_magic.commands.allowance_line import (
    describe_request,
    describe_requests,
    parse_request,
    worth_saying,
)
from bulletin_magic.commands.attach import choose, describe_found
from bulletin_magic.commands.every_cell import EveryCellMode
from bulletin_magic.commands.options import parse
from bulletin_magic.commands.panel import describe_panel
from bulletin_magic.commands.plan_files import describe_files
from bulletin_magic.commands.plan_report import describe_plan, describe_quota, describe_wait
from bulletin_magic.commands.push_and_reset import (
    check_none_stays,
    describe_pushed,
    describe_reset,
    parse_variable_names,
)
from bulletin_magic.commands.vars_report import describe_holdings
from bulletin_magic.commands.verbs import stands_above_code, suggest
from bulletin_magic.connection.deliveries import AllowancesTold, CellList, LeaseReleased, PoolStatus
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.connection.session_events import AllowancesAsked, CellListAsked, PoolStatusAsked, ReleaseAsked
from bulletin_magic.output.cell_outputs import CellOutputs
from bulletin_magic.output.frontend import cell_text, page_id
from bulletin_magic.output.notes import show_note
from bulletin_magic.output.output_history import OutputHistory, describe_replay
from bulletin_magic.output.output_writer import OutputWriter
from bulletin_magic.output.receipts import ReceiptList, describe_receipts, describe_slots
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.background_cells import BackgroundCells
from bulletin_magic.running.foreground import ForegroundRunner
from bulletin_magic.running.pool_client import PoolClient

#: So many receipts are in the panel, and in `%gpu receipts`.
_PANEL_RECEIPTS, _TABLE_RECEIPTS = 3, 20
#: How often a notebook that waits for a decision asks for it.
_LOOK_EVERY_S = 2.0
_NOTHING_HELD = "This notebook holds nothing of the pool."
_SECOND_SIGN = "With one %, this only shows the pool, and the code below runs here. To run it on the pool, write %%gpu."


class GpuLine:
    """Shows and changes where the cells of a notebook run: a method for each verb, which may raise BulletinError."""

    def __init__(
        self,
        shell: InteractiveShell,
        pool: PoolClient,
        foreground: ForegroundRunner,
        backgrounds: BackgroundCells,
        every_cell: EveryCellMode,
        receipts: ReceiptList,
        history: OutputHistory,
        comms: WidgetComms,
    ) -> None:
        self._shell, self._pool, self._foreground = shell, pool, foreground
        self._backgrounds, self._every_cell, self._receipts = backgrounds, every_cell, receipts
        self._history, self._comms = history, comms

    def run(self, line: str) -> None:
        """Do what a line says. Raises BadOption for one that is not understood."""
        verb, _, options = line.strip().partition(" ")
        options = options.strip()
        rest = options.strip("\"'")
        if verb in {"", "status"} and not rest:
            self._status()
        elif verb == "receipts" and (not rest or rest.isdecimal()):
            last = self._receipts.last(int(rest[:4] or _TABLE_RECEIPTS))
            self._shell.display_pub.publish(describe_receipts(last))
        elif verb == "vars" and not rest:
            self._vars()
        elif verb == "push" and rest:
            self._push(parse_variable_names(rest, verb, self._shell.user_ns))
        elif verb == "pull":
            self._pull(parse_variable_names(rest, verb, self._shell.user_ns))
        elif verb == "reset" and not rest:
            self._reset()
        elif verb == "stop" and not rest:
            self._stop()
        elif verb == "on":
            self._switch_on(options)
        elif verb == "off" and not rest:
            self._switch_off()
        elif verb == "request":
            self._request(options)
        elif verb == "attach":
            self._attach(rest)
        elif verb == "connect" and rest:
            description = self._pool.switch_to(Path(rest).expanduser())
            show_note(self._shell, f"%%gpu cells of this notebook now run on the pool {description}.")
        else:
            raise BadOption(suggest(line.strip()), "%gpu")

    def plan(self, cell: str, resources: ResourceSpec) -> None:
        """Show what the cell would send, and whether it would wait. Nothing is run, leased or started."""
        self._pool.check_usable()
        shared_state, last = self._foreground.shared_state, self._foreground.resources
        status, about = self._pool.query_status(), []
        is_fitting = last is not None and resources.is_like(last)
        is_alive = is_fitting and self._foreground.is_executor_alive(status)
        if shared_state.lease_id is not None and not is_fitting:
            about.append("Other options than those of the last cell mean another executor, which has nothing yet.")
        elif shared_state.lease_id is not None and not is_alive:
            about.append("The executor of the last cell is gone, so everything is sent to another one.")
        if isinstance(status, PoolStatus):
            lease = status.lease if is_fitting else None
            is_refused = lease is not None and self._pool.environment.is_refusal
            about.append(describe_wait(status.picture, lease, resources, is_refused=is_refused))
            about += self._pool.environment.sentences if is_refused else ()
            about.append("" if lease else describe_quota(status.picture, resources))
        else:
            about.append(status or "The cell would start a pool of your own first.")
        namespace = self._shell.user_ns
        needs = state.needs(cell, namespace)
        folders = self._pool.folders if is_alive else {}
        about += describe_files(cell, needs.reads, namespace, folders, self._pool.folder_limits)
        about += self._pool.environment.sentences if is_alive else ()
        plan = shared_state.plan(namespace, needs, is_executor_alive=is_alive)
        self._shell.display_pub.publish(describe_plan(plan, about))

    def _status(self) -> None:
        if stands_above_code(cell_text(self._shell)):
            show_note(self._shell, _SECOND_SIGN)
        answer, _ = self._pool.converse(PoolStatusAsked())
        assert isinstance(answer, PoolStatus)
        last = self._receipts.last(_PANEL_RECEIPTS)
        mode, background_lines = self._every_cell.options, self._backgrounds.running_lines
        report = self._ask_allowances(AskAllowances())
        asked = worth_saying(report.rows, report.slot_word)
        panel = describe_panel(answer, self._pool.description, mode, last, background_lines, asked)
        self._shell.display_pub.publish(panel)

    def _switch_on(self, options: str) -> None:
        parsed = parse(options)
        if parsed.is_plan or parsed.is_background or parsed.each:
            raise BadOption("%gpu on takes no --plan, --background or --each: these are for a cell that asks for them.")
        was_on = self._every_cell.options is not None
        self._every_cell.options = options
        since = "Every cell of this notebook now runs" if was_on else "From the next cell on, every cell runs"
        how = f" with {options}" if options else " without options" if was_on else ""
        show_note(self._shell, f"{since} on the pool{how}. %%cpu above a cell keeps it here; %gpu off ends this.")
        if parsed.resources.keep_ms:
            keep = show_duration(parsed.resources.keep_ms)
            show_note(
                self._shell,
                f"The first of them gets a GPU that this notebook keeps, until {keep} after its last cell. It is "
                "charged meanwhile, whether a cell runs or not; %gpu stop gives it back sooner.",
            )

    def _switch_off(self) -> None:
        was_on, has_kept = self._every_cell.options is not None, self._every_cell.kept is not None
        self._every_cell.options = None
        if has_kept and self._pool.is_connected:
            self._stop()
        again = "again" if was_on else "already"
        show_note(self._shell, f"Cells of this notebook run here {again}, except those with %%gpu.")

    def _vars(self) -> None:
        """Show what the pool holds of this notebook."""
        self._pool.check_usable()
        shared_state = self._foreground.shared_state
        status: PoolStatus | str | None = self._pool.query_status() if shared_state.lease_id is not None else None
        is_alive = self._foreground.is_executor_alive(status)
        holdings = shared_state.holdings(self._shell.user_ns, is_executor_alive=is_alive)
        lease = status.lease if isinstance(status, PoolStatus) else None
        doubt = status if isinstance(status, str) else ""
        self._shell.display_pub.publish(describe_holdings(holdings, lease, doubt))

    def _push(self, names: list[str]) -> None:
        """Let a cell on the pool mention the names: what it needs is sent."""
        resources = self._foreground.resources or ResourceSpec()
        answer = self._foreground.call("\n".join(names), resources, check_none_stays(names), has_receipt=False)
        show_note(self._shell, describe_pushed(names, answer))

    def _pull(self, names: list[str]) -> None:
        """Ask what is only on the pool to come, once more; say of each variable what came of it."""
        self._pool.check_usable()
        shared_state, resources = self._foreground.shared_state, self._foreground.resources
        namespace = self._shell.user_ns
        status: PoolStatus | str | None = self._pool.query_status() if shared_state.lease_id is not None else None
        holdings = shared_state.holdings(namespace, is_executor_alive=True)
        remote_only = pull.find_remote_only(holdings, names, namespace)
        if not remote_only:
            show_note(self._shell, pull.describe_nothing_to_pull(names))
            return
        is_alive = resources is not None and self._foreground.is_executor_alive(status)
        gone = [one for one in remote_only.values() if one.home is Home.GONE or not is_alive]
        lost = [StayedBehind(one.name, one.kind, LOST) for one in gone]
        there = [name for name, one in remote_only.items() if one.home is Home.THERE] if is_alive else []
        if resources is not None and there:
            try:
                source = pull.build_source(there, holdings, namespace)
                answer = self._foreground.call(source, resources, lambda _: None, has_receipt=False)
                stayed = namespace.get(OUTCOME, [])
            finally:
                namespace.pop(OUTCOME, None)
            for text in pull.describe_pulled(there, stayed, answer):
                show_note(self._shell, text)
        elif len(lost) == 1:
            raise lost[0]
        for error in lost:
            show_note(self._shell, str(error))

    def _reset(self) -> None:
        """End the executor: what is only there is gone, what is here stays."""
        shared_state, had = self._foreground.shared_state, self._pool.is_connected
        holdings = shared_state.holdings(self._shell.user_ns, is_executor_alive=shared_state.lease_id is not None)
        if had:
            self._pool.converse(ReleaseAsked())
        shared_state.forget()
        show_note(self._shell, describe_reset(holdings, had=had))

    def _stop(self) -> None:
        """Give the GPU back, and say which it was."""
        lease = None
        if self._pool.is_connected:
            answer, _ = self._pool.converse(ReleaseAsked())
            assert isinstance(answer, LeaseReleased)
            lease = answer.lease
        show_note(self._shell, f"Given back: {describe_slots(lease)}." if lease else _NOTHING_HELD)

    def _attach(self, name: str) -> None:
        """List the cells that nodes have, and this notebook's own; take one over, or show one anew."""
        own = self._history.find_by_number(int(name)) if name.isdecimal() and len(name) < SHORT else None
        if own is not None:
            self._replay(own)
            return
        lines = [] if name else self._history.describe()
        try:
            answer, _ = self._pool.converse(CellListAsked())
        except BulletinError as error:
            if not lines:
                raise
            lines.append(str(error))
        else:
            assert isinstance(answer, CellList)
            lines = [describe_found(answer.found, lambda note: self._history.find_by_id(note.cell) is not None), *lines]
            if name:
                note = choose(answer.found, name)
                if note is None:
                    raise BadOption(
                        f"There is no cell {name!r} that could be shown. `%gpu attach` lists those there are.", "%gpu"
                    )
                self._foreground.join(note)
                return
        print("\n".join(filter(None, lines)))  # noqa: T201 - the answer to a question that was typed

    def _request(self, line: str) -> None:
        """Ask for more than the rules give, take that back, or list what was asked for; wait for a decision if told."""
        asked = parse_request(line)
        report = self._ask_allowances(asked.question)
        if isinstance(asked.question, AskAllowances):
            print("\n".join(describe_requests(report.rows, report.slot_word)))  # noqa: T201 - the answer to a question
            return
        [row] = report.rows
        show_note(self._shell, describe_request(row, report.slot_word))
        if not asked.waits or row.state != "open":
            return
        try:
            while row.state == "open":
                time.sleep(_LOOK_EVERY_S)
                rows = self._ask_allowances(AskAllowances(), awaited=row.id).rows
                row = next((one for one in rows if one.id == row.id), row)
        except KeyboardInterrupt:
            show_note(self._shell, "This cell waits no longer; what you asked for stays open. `%gpu request` lists it.")
            return
        show_note(self._shell, describe_request(row, report.slot_word))

    def _ask_allowances(self, question: AllowanceQuestion, awaited: str = "") -> AllowanceReport:
        try:
            answer, _ = self._pool.converse(AllowancesAsked(question, awaited))
        except Refused as error:
            raise NotDone(error.reason) from None  # no cell was refused
        assert isinstance(answer, AllowancesTold)
        return answer.report

    def _replay(self, cell: CellOutputs) -> None:
        """Show what a cell of this notebook showed; what a background cell shows from now on comes here, too."""
        running = self._backgrounds.find_showing(cell)
        show_note(self._shell, describe_replay(cell, self._history.now_ms(), goes_on=running is not None))

        def replay() -> None:
            outputs = OutputWriter(self._shell, is_numbered=False)
            with self._history.lock:
                is_elsewhere = cell.page != page_id(self._shell)
                widgets = list(cell.widgets()) if is_elsewhere else []
                messages = list(cell.messages())
            for widget in widgets:
                self._comms.reopen(widget)
            for kind, message in messages:
                outputs.show_parsed(kind, message)
                outputs.flush()  # else two streams would change places
            self._history.move_to_page(cell, page_id(self._shell))

        if running is not None:
            running.continue_below(replay)
        else:
            replay()
