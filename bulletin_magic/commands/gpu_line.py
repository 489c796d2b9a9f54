"""What `%gpu` and a verb do."""

from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from bulletin import state
from bulletin.errors import BadOption, BulletinError, StayedBehind
from bulletin.state.handles import LOST
from bulletin.state.holdings import Home
from bulletin.state.names import OUTCOME
from bulletin_magic.commands import pull
from bulletin_magic.commands.attach import choose, describe_found
from bulletin_magic.commands.every_cell import EveryCellMode
from bulletin_magic.commands.options import parse
from bulletin_magic.commands.panel import panel
from bulletin_magic.commands.plan_report import describe_plan, describe_wait
from bulletin_magic.commands.push_and_reset import describe_pushed, describe_reset, refuse_stayed, variables
from bulletin_magic.commands.vars_report import describe_holdings
from bulletin_magic.commands.verbs import advise, stands_above_code
from bulletin_magic.connection.cell_run import SHORT
from bulletin_magic.connection.deliveries import CellList, LeaseReleased, PoolStatus
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.connection.session_events import CellListAsked, PoolStatusAsked, ReleaseAsked
from bulletin_magic.output.cell_outputs import CellOutputs
from bulletin_magic.output.frontend import cell_text, page_id
from bulletin_magic.output.notes import show_note
from bulletin_magic.output.output_history import OutputHistory, describe_anew
from bulletin_magic.output.output_writer import OutputWriter
from bulletin_magic.output.receipts import ReceiptList, describe_place, describe_receipts
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.background import BackgroundCells
from bulletin_magic.running.foreground import ForegroundRunner
from bulletin_magic.running.pool_client import PoolClient

_LAST_SHOWN, _RECEIPTS_SHOWN = 3, 20
_HOLDS_NONE = "This notebook holds no GPU."
_MEANT_TWO = "With one %, this only shows the pool, and the code below runs here. To run it on the pool, write %%gpu."


class GpuLine:
    """Shows and changes where the cells of a notebook run. Each verb raises BulletinError."""

    def __init__(
        self,
        shell: InteractiveShell,
        pool: PoolClient,
        foreground: ForegroundRunner,
        backgrounds: BackgroundCells,
        every_cell: EveryCellMode,
        receipts: ReceiptList,
        shown: OutputHistory,
        comms: WidgetComms,
    ) -> None:
        self._shell, self._pool, self._foreground = shell, pool, foreground
        self._backgrounds, self._every_cell, self._receipts = backgrounds, every_cell, receipts
        self._shown, self._comms = shown, comms

    def run(self, line: str) -> None:
        """Do what a line says. Raises BadOption for one that is not understood."""
        verb, _, options = line.strip().partition(" ")
        options = options.strip()
        rest = options.strip("\"'")
        if verb in {"", "status"} and not rest:
            self._status()
        elif verb == "receipts" and (not rest or rest.isdecimal()):
            last = self._receipts.last(int(rest[:4] or _RECEIPTS_SHOWN))
            self._shell.display_pub.publish(describe_receipts(last))
        elif verb == "vars" and not rest:
            self._vars()
        elif verb == "push" and rest:
            self._push(variables(rest, verb, self._shell.user_ns))
        elif verb == "pull":
            self._pull(variables(rest, verb, self._shell.user_ns))
        elif verb == "reset" and not rest:
            self._reset()
        elif verb == "stop" and not rest:
            self._stop()
        elif verb == "on":
            self._switch_on(options)
        elif verb == "off" and not rest:
            self._switch_off()
        elif verb == "attach":
            self._attach(rest)
        elif verb == "connect" and rest:
            words = self._pool.move(Path(rest).expanduser())
            show_note(self._shell, f"%%gpu cells of this notebook now run on the pool {words}.")
        else:
            raise BadOption(advise(line.strip()))

    def plan(self, cell: str, resources: ResourceSpec) -> None:
        """Show what the cell would send, and whether it would wait. Nothing is run, leased or started."""
        self._pool.check_free()
        shared, last = self._foreground.shared, self._foreground.resources
        looked, about = self._pool.look(), []
        is_fitting = last is not None and resources.is_like(last)
        is_kept = is_fitting and self._foreground.is_kept(looked)
        if shared.lease_id is not None and not is_fitting:
            about.append("Other options than those of the last cell mean another executor, which has nothing yet.")
        elif shared.lease_id is not None and not is_kept:
            about.append("The executor of the last cell is gone, so everything is sent to another one.")
        if isinstance(looked, PoolStatus):
            about.append(describe_wait(looked.picture, looked.lease if is_fitting else None, resources))
        else:
            about.append(looked or "The cell would start a pool of your own first.")
        plan = shared.plan(self._shell.user_ns, state.needs(cell, self._shell.user_ns), is_kept=is_kept)
        self._shell.display_pub.publish(describe_plan(plan, about))

    def _status(self) -> None:
        if stands_above_code(cell_text(self._shell)):
            show_note(self._shell, _MEANT_TWO)
        answer, _ = self._pool.converse(PoolStatusAsked())
        assert isinstance(answer, PoolStatus)
        last = self._receipts.last(_LAST_SHOWN)
        mode, meanwhile = self._every_cell.options, self._backgrounds.under_way
        self._shell.display_pub.publish(panel(answer, self._pool.words, mode, last, meanwhile))

    def _switch_on(self, options: str) -> None:
        parsed = parse(options)
        if parsed.is_plan or parsed.is_background or parsed.each:
            raise BadOption("%gpu on takes no --plan, --background or --each: these are for a cell that asks for them.")
        was_on, self._every_cell.options = self._every_cell.options is not None, options
        since = "Every cell of this notebook now runs" if was_on else "From the next cell on, every cell runs"
        how = f" with {options}" if options else " without options" if was_on else ""
        show_note(self._shell, f"{since} on the pool{how}. %%cpu above a cell keeps it here; %gpu off ends this.")

    def _switch_off(self) -> None:
        was_on, self._every_cell.options = self._every_cell.options is not None, None
        again = "again" if was_on else "already"
        show_note(self._shell, f"Cells of this notebook run here {again}, except those with %%gpu.")

    def _vars(self) -> None:
        """Show what the pool holds of this notebook."""
        self._pool.check_free()
        shared = self._foreground.shared
        looked: PoolStatus | str | None = self._pool.look() if shared.lease_id is not None else None
        held = shared.holdings(self._shell.user_ns, is_kept=self._foreground.is_kept(looked))
        lease = looked.lease if isinstance(looked, PoolStatus) else None
        doubt = looked if isinstance(looked, str) else ""
        self._shell.display_pub.publish(describe_holdings(held, lease, doubt))

    def _push(self, names: list[str]) -> None:
        """Let a cell on the pool mention the names: what it needs is sent."""
        resources = self._foreground.resources or ResourceSpec()
        answer = self._foreground.call("\n".join(names), resources, refuse_stayed(names), has_receipt=False)
        show_note(self._shell, describe_pushed(names, answer))

    def _pull(self, names: list[str]) -> None:
        """Ask what is only on the pool to come, once more; say of each variable what came of it."""
        self._pool.check_free()
        shared, resources, namespace = self._foreground.shared, self._foreground.resources, self._shell.user_ns
        looked: PoolStatus | str | None = self._pool.look() if shared.lease_id is not None else None
        held = shared.holdings(namespace, is_kept=True)
        away = pull.away(held, names, namespace)
        if not away:
            show_note(self._shell, pull.describe_here(names))
            return
        is_kept = resources is not None and self._foreground.is_kept(looked)
        lost = [StayedBehind(one.name, one.kind, LOST) for one in away.values() if one.home is Home.GONE or not is_kept]
        there = [name for name, one in away.items() if one.home is Home.THERE] if is_kept else []
        if resources is not None and there:
            try:
                source = pull.source_of(there, held, namespace)
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
        shared, had = self._foreground.shared, self._pool.is_connected
        held = shared.holdings(self._shell.user_ns, is_kept=shared.lease_id is not None)
        if had:
            self._pool.converse(ReleaseAsked())
        shared.forget()
        show_note(self._shell, describe_reset(held, had=had))

    def _stop(self) -> None:
        """Give the GPU back."""
        lease = None
        if self._pool.is_connected:
            answer, _ = self._pool.converse(ReleaseAsked())
            assert isinstance(answer, LeaseReleased)
            lease = answer.lease
        show_note(self._shell, f"Given back: {describe_place(lease)}." if lease else _HOLDS_NONE)

    def _attach(self, name: str) -> None:
        """List the cells that nodes have, and this notebook's own; take one over, or show one anew."""
        own = self._shown.find(int(name)) if name.isdecimal() and len(name) < SHORT else None
        if own is not None:
            self._show_anew(own)
            return
        lines = [] if name else self._shown.describe()
        try:
            answer, _ = self._pool.converse(CellListAsked())
        except BulletinError as error:
            if not lines:
                raise
            lines.append(str(error))
        else:
            assert isinstance(answer, CellList)
            lines = [describe_found(answer.found, lambda note: self._shown.of(note.cell) is not None), *lines]
            if name:
                note = choose(answer.found, name)
                if note is None:
                    raise BadOption(
                        f"There is no cell {name!r} that could be shown. `%gpu attach` lists those there are."
                    )
                self._foreground.join(note)
                return
        print("\n".join(filter(None, lines)))  # noqa: T201 - the answer to a question that was typed

    def _show_anew(self, cell: CellOutputs) -> None:
        """Show what a cell of this notebook showed; what a background cell shows from now on comes here, too."""
        running = self._backgrounds.that_shows(cell)
        show_note(self._shell, describe_anew(cell, self._shown.now_ms(), goes_on=running is not None))

        def replay() -> None:
            outputs = OutputWriter(self._shell, is_numbered=False)
            with self._shown.lock:
                is_elsewhere = cell.page != page_id(self._shell)
                widgets, kept = list(cell.widgets()) if is_elsewhere else [], list(cell.messages())
            for widget in widgets:
                self._comms.reopen(widget)
            for kind, message in kept:
                outputs.show_parsed(kind, message)
                outputs.flush()  # else two streams would change places
            self._shown.move(cell, page_id(self._shell))

        if running is not None:
            running.show_here(replay)
        else:
            replay()
