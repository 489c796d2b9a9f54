"""What `%%gpu` and its options do with a cell: run it, in one of the ways there are, or only plan it."""

from collections.abc import Callable, Sequence

from IPython.core.interactiveshell import InteractiveShell

from bulletin.errors import BadOption, CellStopped
from bulletin.ids import ProjectId
from bulletin.offload import Outcome, is_off
from bulletin_magic.commands.every_cell import EveryCellMode
from bulletin_magic.commands.gpu_line import GpuLine
from bulletin_magic.commands.off_mode import OFF, LocalBackgroundCell, run_each_locally
from bulletin_magic.commands.options import CellOptions, parse
from bulletin_magic.connection.deliveries import PoolStatus
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.output.notes import show_note
from bulletin_magic.output.output_history import OutputHistory
from bulletin_magic.output.receipts import ReceiptList
from bulletin_magic.running.background import BackgroundCell
from bulletin_magic.running.background_cells import BackgroundCells
from bulletin_magic.running.fallback import NEVER_BEGAN, describe_fallback, run_locally
from bulletin_magic.running.foreground import ForegroundRunner
from bulletin_magic.running.kernel_activity import KernelActivity
from bulletin_magic.running.pool_client import PoolClient
from bulletin_magic.running.sweeps import Sweep, SweepTask, names_for


class GpuCell:
    """Runs the cells of a notebook as their lines of options say."""

    def __init__(
        self,
        shell: InteractiveShell,
        pool: PoolClient,
        foreground: ForegroundRunner,
        backgrounds: BackgroundCells,
        gpu_line: GpuLine,
        every_cell: EveryCellMode,
        history: OutputHistory,
        receipts: ReceiptList,
        make_activity: Callable[[], KernelActivity],
    ) -> None:
        self._shell, self._pool, self._foreground = shell, pool, foreground
        self._backgrounds, self._gpu_line, self._every_cell = backgrounds, gpu_line, every_cell
        self._history, self._receipts, self._make_activity = history, receipts, make_activity
        self._moot_projects: set[ProjectId] = set()

    def run(self, line: str, cell: str, magic: str) -> BackgroundCell | LocalBackgroundCell | list[object] | None:
        """Run a cell with a line of options; `magic` is what the user wrote before them.

        Returns what the notebook shows as the cell's value: a background cell without a name, or the values of --each.
        """
        options = parse(line)
        if not cell.strip():
            show_note(self._shell, "The cell is empty: nothing was run.")
            return None
        if options.is_plan:
            self._plan(cell, options)
            return None
        if options.each:
            return self._run_each(cell, options.each, options, magic)
        if is_off():
            return self._run_off(cell, options)
        if options.is_background:
            started = self._backgrounds.start(cell, options.name, options.resources, options.max_wait_ms)
            return None if options.name else started
        self._run_in_foreground(cell, options)
        return None

    def run_sweep(
        self,
        tasks: Sequence[SweepTask],
        resources: ResourceSpec,
        label: str,
        parallel: int | None,
        max_wait_ms: int | None = None,
    ) -> list[Outcome]:
        """Run tasks on `parallel` workers, or as many as the pool has slots; return what came of each, in order."""
        if not tasks:
            return []
        if parallel is None:
            status = self._pool.query_status()
            parallel = len(status.picture.slots) if isinstance(status, PoolStatus) else 1
        sweep = Sweep(
            self._shell,
            self._pool.open_link,
            resources,
            label,
            self._make_activity(),
            self._history,
            self._receipts,
            max_wait_ms,
        )
        return sweep.run(tasks, max(1, parallel))

    def _plan(self, cell: str, options: CellOptions) -> None:
        if is_off():
            show_note(self._shell, OFF)
        else:
            self._gpu_line.plan(cell, self._every_cell.choose(options.resources))

    def _run_in_foreground(self, cell: str, options: CellOptions) -> None:
        """Run the cell on the pool and wait for it; in the notebook where the pool does not and the options say so."""
        resources = self._every_cell.choose(options.resources)
        with self._foreground.exclusive():
            try:
                finished = self._foreground.run(cell, resources, max_wait_ms=options.max_wait_ms)
            except NEVER_BEGAN as error:
                if not options.fallback:
                    raise self._every_cell.with_advice(error, cell) from None
                why = error
            else:
                self._foreground.apply(finished)
                self._note_moot_project(resources.project)
                return
        show_note(self._shell, describe_fallback(why))
        run_locally(self._shell, cell, lines_above=0 if self._every_cell.is_whole_cell(cell) else 1)

    def _note_moot_project(self, project: ProjectId | None) -> None:
        """Say once of each project that is asked for that the pool knows none, where that is so."""
        if project and not self._pool.has_projects and project not in self._moot_projects:
            self._moot_projects.add(project)
            show_note(self._shell, f"--project {project} counts for nothing here: a pool of your own has no projects.")

    def _run_off(self, cell: str, options: CellOptions) -> LocalBackgroundCell | None:
        """Run the cell in the notebook: Bulletin is off."""
        if not options.is_background:
            run_locally(self._shell, cell, lines_above=1)
            return None
        ended = LocalBackgroundCell(options.name, cell, self._shell)
        if options.name is None:
            return ended
        self._shell.user_ns[options.name] = ended
        return None

    def _run_each(self, cell: str, name: str, options: CellOptions, magic: str) -> list[object]:
        """Run the cell for each element of a variable; return its last line's values, and errors in their places."""
        if name not in self._shell.user_ns:
            raise BadOption(f"The option --each of %%gpu: there is no variable {name!r}.")
        try:
            elements = list(self._shell.user_ns[name])
        except TypeError:
            raise BadOption(f"The option --each of %%gpu: {name} is not a list or the like.") from None
        tasks = [SweepTask(cell, names_for(element), None) for element in elements]
        if is_off():
            outcomes = run_each_locally(tasks, self._shell)
        else:
            label = f"{magic} --each {name}"
            try:
                outcomes = self.run_sweep(tasks, options.resources, label, None, options.max_wait_ms)
            except KeyboardInterrupt:  # elements work on copies
                raise CellStopped("The cell was stopped, and all of its elements with it.") from None
        failed = [(number, outcome.error) for number, outcome in enumerate(outcomes) if outcome.error is not None]
        if failed:
            number, first = failed[0]
            text = f"{len(failed)} of {len(outcomes)} elements failed; at first number {number}: {type(first).__name__}"
            said = str(first).removesuffix(".")
            show_note(self._shell, f"{text}: {said}. The errors stand in their places.")
        return [outcome.value if outcome.error is None else outcome.error for outcome in outcomes]
