"""The magics %%gpu, %gpu, %%remote and %%cpu, with their settings, and what they are made of."""

import atexit
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from traitlets import Bool, CaselessStrEnum, Enum, Float, Int, Unicode

from bulletin import state
from bulletin.errors import BadOption
from bulletin.offload import Outcome, is_off
from bulletin.state import modules
from bulletin_magic.commands import completion
from bulletin_magic.commands.debug_magic import DebugMagic
from bulletin_magic.commands.every_cell import EveryCellMode
from bulletin_magic.commands.gpu_cell import GpuCell
from bulletin_magic.commands.gpu_line import GpuLine
from bulletin_magic.commands.magic_line import expand_line
from bulletin_magic.commands.off_mode import OFF, LocalBackgroundCell
from bulletin_magic.connection.folder_listing import FolderLimits
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.connection.server_place import ServerPlace
from bulletin_magic.output.late_output import LateOutput
from bulletin_magic.output.missed_output import MissedOutputNotifier
from bulletin_magic.output.notes import show_note
from bulletin_magic.output.output_history import OutputHistory
from bulletin_magic.output.receipts import Receipt, ReceiptList
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.background import BackgroundCell
from bulletin_magic.running.background_cells import BackgroundCells
from bulletin_magic.running.foreground import ForegroundRunner
from bulletin_magic.running.kernel_activity import KernelActivity
from bulletin_magic.running.kernel_shutdown import KernelShutdown
from bulletin_magic.running.pool_client import PoolClient
from bulletin_magic.running.sweeps import SweepTask

_HELP = frozenset({"--help", "-h"})
_MISPLACED = "`%%gpu` must be the first line of its cell. The lines above it have run, here; those below have not."


@magics_class
class BulletinMagics(Magics):
    """Cells on a GPU of a shared pool."""

    receipts = Bool(
        default_value=True, help="Show one line about time, place and memory after a %%gpu cell that took a while."
    ).tag(config=True)
    activity_every_s = Float(
        60.0,
        help="How often the kernel says that it is busy while a cell waits or runs on the pool, in seconds. Well below "
        "the time after which the hub ends idle servers: that counts what kernels say.",
    ).tag(config=True)
    mode = Enum(
        ("off", "on"),
        default_value="off",
        help="`on`: kernels start as if their first cell were `%gpu on`. The environment variable BULLETIN, where it "
        "is `on` or `off`, has the last word.",
    ).tag(config=True)
    mode_options = Unicode(
        "", help="The options of %%gpu that each cell has in a kernel that starts with `mode` on, as in `--time 1h`."
    ).tag(config=True)

    on_restart = CaselessStrEnum(
        ["detach", "cancel"],
        "detach",
        help="What becomes of a %%gpu cell that runs when its kernel is restarted or dies: detach: it goes on, and "
        "`%gpu attach` in your next kernel has all of it. cancel: it is ended; if the kernel died, after "
        "half a minute (three times `Pool.away`).",
    ).tag(config=True)
    on_shutdown = CaselessStrEnum(
        ["detach", "cancel"],
        "cancel",
        help="What becomes of a %%gpu cell that runs when its kernel is shut down, by you or by its server, which is "
        "stopped by SIGTERM: cancel: it is ended. detach: it goes on, as with on_restart.",
    ).tag(config=True)
    keep_shown_mb = Int(
        32,
        min=0,
        help="How much is kept of what cells on the pool showed, in MB, the newest cells first: `%gpu attach 3` shows "
        "it anew, on a page that was closed meanwhile. One cell may have a quarter of it.",
    ).tag(config=True)
    folder_files = Int(
        10_000,
        min=1,
        help="How many files and folders of the notebook's working folder follow a cell to a node that does not share "
        "it, what is nearest first; and how many new ones of a session's cells come back.",
    ).tag(config=True)
    folder_file_mb = Int(
        4_000,
        min=0,
        help="How large a file of the working folder may be to follow a cell to a node that does not share it, or to "
        "come back from there, in MB.",
    ).tag(config=True)
    folder_total_mb = Int(
        20_000,
        min=0,
        help="How much cells of one session may write into the notebook's working folder from a node that does not "
        "share it, in MB.",
    ).tag(config=True)
    library_mb = Int(
        200,
        min=0,
        help="How large a library of the notebook's may be to follow a cell to a node whose environment lacks it, in "
        "MB; 0 is that none does.",
    ).tag(config=True)
    stop_after_s = Float(
        0.2,
        min=0.0,
        help="How long the stop button waits before it interrupts a %%gpu cell, in seconds. Jupyter presses it too, "
        "just before it restarts a kernel, and a cell that shall go on must not hear that.",
    ).tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell=shell)
        self._shell = shell
        self._every_cell, self._receipts = EveryCellMode(shell), ReceiptList()
        self._comms = WidgetComms(shell, self._deliver_view_message)
        self._history = OutputHistory(shell, lambda: self.keep_shown_mb * 1_000_000)
        self._missed_output = MissedOutputNotifier(shell, self._history)
        late_output = LateOutput(shell, self._comms, self._history.add_late)
        self._shutdown = KernelShutdown(shell, self)
        place = ServerPlace.claim(os.environ)
        self._pool = PoolClient(
            shell, self._comms, late_output, self._shutdown, self._make_activity, self._folder_limits, place
        )
        self._foreground = ForegroundRunner(
            shell,
            self._pool,
            late_output,
            is_whole_cell=self._every_cell.is_whole_cell,
            shutdown=self._shutdown,
            add_receipt=self._add_receipt,
            history=self._history,
        )
        self._backgrounds = BackgroundCells(shell, self._pool.open_link, self._comms, self._history, self._receipts)
        self._gpu_line = GpuLine(
            shell,
            self._pool,
            self._foreground,
            self._backgrounds,
            self._every_cell,
            self._receipts,
            self._history,
            self._comms,
        )
        self._gpu_cell = GpuCell(
            shell,
            self._pool,
            self._foreground,
            self._backgrounds,
            self._gpu_line,
            self._every_cell,
            self._history,
            self._receipts,
            self._make_activity,
        )
        self._debug_magic = DebugMagic(shell, self._foreground.debug)
        self._debug_magic.install()
        self._every_cell.install()
        self._shutdown.install(self._detach)
        self._missed_output.install()
        said = os.environ.get("BULLETIN", "").lower()
        if (said if said in {"on", "off"} else self.mode) == "on":
            self._every_cell.options = self.mode_options
        elif place is not None and said != "off":
            self._every_cell.options = place.options
        atexit.register(self.close)
        completion.install(shell)
        shell.events.register("post_run_cell", lambda _: modules.observe())

    @no_var_expand
    @cell_magic("gpu")  # type: ignore[arg-type]  # IPython types its decorators for no argument
    def cell(self, line: str, cell: str) -> BackgroundCell | LocalBackgroundCell | list[object] | None:
        """Run this cell on a GPU of the pool, as if it ran here.

        The cell sees the notebook's variables, prints into the notebook, and leaves its
        results in the notebook's variables. If all GPUs are busy it waits, and says for how
        long and why. The stop button stops it.

            %%gpu
            model.fit(images, labels)

            %%gpu --gpus 2 --time "2 h" --label "big run"
            train(model)

        Options, all of which may be left out:

            --gpus N             how many GPUs, on one node (1); 0 runs it on a CPU of the pool
            --gpu-type NAME      words of the GPU's name, as in A100; "MIG" or "1g.10gb"
                                 for a slice of one
            --gpu-memory SIZE    what each GPU must have, as in "20 GB"
            --cpus N             how many CPUs of the GPU's node
            --memory SIZE        how much of that node's memory, as in "50 GB"; a cell that
                                 uses more is ended
            --time TIME          how long the cell may run, as in "30 min"; shorter cells
                                 wait less
            --exclusive          on a node that nobody else is on meanwhile: one that has just as
                                 many GPUs as --gpus says; all of it is charged, and it is for
                                 classes of service that let you
            --qos NAME           the class of service, as your pool names them (your
                                 project's default, or interactive)
            --keep TIME          keep the GPU between cells, for so long after the last one, as
                                 in "20 min"; what is kept is charged, and must be within your
                                 project's guarantee (QoS reserved)
            --project NAME       which of your projects pays
            --label TEXT         a name for the cell in lists and reports
            --environment ID     one of the pool's environments
            --background NAME    run it while the notebook goes on; NAME.result() waits for
                                 it (QoS batch)
            --each NAME          run it once for each element of NAME, on several places; the
                                 cell calls the element `each`, and has the keys of a dict as
                                 names; the result is a list of the values of the last line
            --max-wait TIME      give up if no GPU came free for so long, as in "2 min"
            --fallback cpu       run the cell here, without a GPU, where the pool does not run
                                 it: there is none, it refuses the cell or your account, the
                                 cell waited for its --max-wait, or one of its variables cannot
                                 travel; not for --background and --each
            --plan               run nothing; show what would be sent, how much of it is new,
                                 and what stays here
            --help               run nothing; show this

        `%gpu` shows the pool and what this notebook holds; `%gpu stop` gives the GPU back.
        For a part of a cell, write `with gpu:` above it; for a function, `@gpu`.
        """
        return self._run(expand_line(self._shell, line, "%%gpu"), cell, "%%gpu")

    def _run(self, line: str, cell: str, magic: str) -> BackgroundCell | LocalBackgroundCell | list[object] | None:
        """Run a cell with a line of options, or show the help; `magic` is what the user wrote before them."""
        if line.strip() in _HELP:
            print(inspect.cleandoc(BulletinMagics.cell.__doc__ or ""))  # noqa: T201 - asked for
            return None
        return self._gpu_cell.run(line, cell, magic)

    def run_sweep(
        self, tasks: Sequence[SweepTask], resources: ResourceSpec, label: str, parallel: int | None
    ) -> list[Outcome]:
        """Run tasks on several workers; return what came of each, in order. See `GpuCell.run_sweep`."""
        return self._gpu_cell.run_sweep(tasks, resources, label, parallel)

    def call(self, source: str, resources: ResourceSpec, check: Callable[[state.Captured], None]) -> None:
        """Run a line of ours that calls something of the user's, as a cell; it leaves its results as a cell does.

        `check` may raise because of what would stay behind.
        """
        self._foreground.call(source, self._every_cell.choose(resources), check)

    @no_var_expand
    @line_magic("gpu")  # type: ignore[arg-type]  # see above
    def line(self, line: str) -> None:
        """Show or change where %%gpu cells of this notebook run.

            %gpu                 the pool, its queue, your quota, what this notebook holds,
                                 its last cells
            %gpu receipts [N]    what the last N cells of this notebook cost (20)
            %gpu vars            the variables of this notebook that are on the pool
            %gpu push NAMES      send these variables now, so that the next cell need not
            %gpu pull [NAMES]    try again to bring what is only on the pool, and say why
                                 something stays there
            %gpu reset           end the process on the pool; the next cell has a fresh one,
                                 with your variables
            %gpu stop            give the GPU back now, instead of when somebody needs it
            %gpu on [OPTIONS]    from the next cell on, run every cell on the pool, with
                                 these options of %%gpu
            %gpu off             run cells here again, except those with %%gpu
            %gpu attach          your cells whose notebook died, and those of this notebook
                                 that showed something
            %gpu attach ID       show all that such a cell printed, wait for its end, bring
                                 its variables here
            %gpu attach N        show anew all that cell [N] of this notebook showed, as when
                                 its page was closed
            %gpu request --time 4h --why "..."
                                 ask for longer cells than you may have, or with --gpus for
                                 more GPUs (with --exclusive, as a node for yourself): a lead
                                 of the project decides, or an admin;
                                 --for 2d says for how long, --wait waits for the answer;
                                 without options it lists what you asked for
            %gpu connect PATH    use the pool of this connection file
            %gpu help            show this

        A cell that starts with %%gpu runs on the pool; `%%gpu?` shows its options. While the
        pool runs every cell, one that starts with %%cpu runs here.
        """
        line = expand_line(self._shell, line, "%gpu")
        if line.strip() in {*_HELP, "help"}:
            print(inspect.cleandoc(BulletinMagics.line.__doc__ or ""))  # noqa: T201 - asked for
        elif is_off():
            show_note(self._shell, OFF)
        else:
            self._gpu_line.run(line)

    @no_var_expand
    @cell_magic("remote")  # type: ignore[arg-type]  # see above
    def remote(self, line: str, cell: str) -> BackgroundCell | LocalBackgroundCell | list[object] | None:
        """Run this cell on the pool without a GPU: `%%gpu --gpus 0`. It takes the other options of %%gpu."""
        line = expand_line(self._shell, line, "%%remote")
        if re.search(r"(^|\s)--gpus\b", line):
            raise BadOption("%%remote asks for no GPU. To have some, start the cell with %%gpu.")
        return self._run(line if line.strip() in _HELP else f"--gpus 0 {line}", cell, "%%remote")

    @no_var_expand
    @cell_magic("cpu")  # type: ignore[arg-type]  # see above
    def here(self, line: str, cell: str) -> None:
        """Run this cell here, in the notebook, after `%gpu on`. It takes no options."""
        if line.strip():
            raise BadOption(f"%%cpu takes no options: {line.strip()!r} cannot stand beside it.")
        shell: Any = self._shell
        shell.run_cell(cell)  # below another magic: as the first line of a cell, it is a remark

    @no_var_expand
    @line_magic("%gpu")  # type: ignore[arg-type]  # see above
    def misplaced(self, _line: str) -> None:
        """Raise UsageError: this is what IPython makes of a %%gpu that is not the first line of its cell."""
        raise UsageError(_MISPLACED)

    def close(self) -> None:
        """Give the session back, leave the pool, and take what listens to the kernel away."""
        if self._pool.is_own:
            self._backgrounds.close()
            self._pool.disconnect()
            self._comms.close()
            self._debug_magic.uninstall()
            self._missed_output.uninstall()
            self._shutdown.uninstall()

    def unload(self) -> None:
        """Close, and let the notebook's cells alone."""
        self.close()
        self._every_cell.uninstall()
        completion.uninstall(self._shell)

    def _detach(self) -> None:
        """Let what runs on the pool go on: the kernel ends."""
        if self._pool.is_own:
            self._backgrounds.detach()
            self._pool.detach()

    def _make_activity(self) -> KernelActivity:
        return KernelActivity(self._shell, self.activity_every_s)

    def _folder_limits(self) -> FolderLimits:
        return FolderLimits(
            self.folder_files,
            self.folder_file_mb * 1_000_000,
            self.folder_total_mb * 1_000_000,
            self.library_mb * 1_000_000,
        )

    def _deliver_view_message(self, message: Mapping[str, Any]) -> bool:
        return self._foreground.deliver_view_message(message)

    def _add_receipt(self, receipt: Receipt) -> None:
        """Keep a receipt, and show what is worth its words, if the user wants it."""
        for text in self._receipts.add(receipt):
            if self.receipts:
                show_note(self._shell, text)
