"""`with gpu:` and `@gpu` in a notebook: their work becomes a cell that calls it."""

import ast
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, TracebackType
from typing import Any, Protocol

import msgspec
from IPython.core.interactiveshell import InteractiveShell

from bulletin import offload, state
from bulletin.errors import CannotSend
from bulletin.offload import Gpu, Outcome, gpu
from bulletin.state.names import CALL, ITEM, ITEM_WORD, OUTCOME
from bulletin_magic.commands.options import resources_from_kwargs
from bulletin_magic.connection.availability import pool_may_exist
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.output.notes import show_note
from bulletin_magic.running.blocks import rewrite_gpu_blocks
from bulletin_magic.running.outcome import RemoteTraceback
from bulletin_magic.running.sweeps import SweepTask

_LOCAL = "`with gpu:` in a module runs here, without a GPU. Put it into a cell, or @gpu above the function that has it."
_OURS = ("bulletin.", "bulletin_magic.")
_ARGUMENT = re.compile(r"args\[\d+\]|kwargs\['\w+'\]")


class OffloadRunner(Protocol):
    """What runs a call of ours on the pool, and sweeps."""

    def call(self, source: str, resources: ResourceSpec, check: Callable[[state.Captured], None]) -> None:
        """Run a line of source as a cell. `check` may raise because of what would stay behind."""

    def run_sweep(
        self, tasks: Sequence[SweepTask], resources: ResourceSpec, label: str, parallel: int | None
    ) -> list[Outcome]:
        """Run tasks on several workers; return what came of each, in order."""


class NotebookOffload:
    """Takes blocks and functions of this notebook to the pool; rewrites its cells so that blocks can be taken."""

    def __init__(self, shell: InteractiveShell, runner: OffloadRunner) -> None:
        self._shell, self._runner = shell, runner
        self._has_told_ran_locally = False
        self._cached_pool_may_exist = False  #: a pool that could be there stays so: it is looked for until then
        self._pid = os.getpid()

    def install(self) -> None:
        """Take the work of this process from now on. The notebook has `gpu`, unless it has such a name."""
        self.uninstall(self._shell)
        shell: Any = self._shell
        self._shell.ast_transformers.append(_GpuBlockTransformer(self._shell))
        if "gpu" not in self._shell.user_ns:
            shell.push({"gpu": gpu}, interactive=False)
        offload.serve(self)

    @staticmethod
    def uninstall(shell: InteractiveShell) -> None:
        """Take nothing any more."""
        shell.ast_transformers[:] = [one for one in shell.ast_transformers if not isinstance(one, _GpuBlockTransformer)]
        offload.serve(None)

    @property
    def is_able(self) -> bool:
        """Whether there may be a pool, and this process is the notebook's own."""
        self._cached_pool_may_exist = self._cached_pool_may_exist or pool_may_exist(os.environ)
        return self._cached_pool_may_exist and os.getpid() == self._pid

    def check(self, options: Mapping[str, object]) -> None:
        """Raise BadOption if these are not options of %%gpu."""
        resources_from_kwargs(options)

    def run(self, work: Callable[[], object], options: Mapping[str, object], *, is_block: bool) -> object:
        """Run `work` on the pool, as a cell that calls it; return its result. See `offload.Taker`."""
        waits = "await " if inspect.iscoroutinefunction(work) else ""
        namespace = self._shell.user_ns

        code: CodeType = work.__code__
        spelled = {*code.co_freevars, *code.co_names}

        def check(captured: state.Captured) -> None:
            for stayed in captured.stayed:
                if stayed.path in spelled or (not is_block and _ARGUMENT.fullmatch(stayed.path)):
                    raise CannotSend(stayed.path, stayed.path, stayed.kind)

        namespace[CALL] = work
        try:
            self._runner.call(f"{OUTCOME} = {waits}{CALL}()", resources_from_kwargs(options), check)
            return namespace.get(OUTCOME)
        except BaseException as error:
            failed: Any = error
            shown = getattr(failed, "_render_traceback_", None)
            if isinstance(shown, RemoteTraceback):
                failed._render_traceback_ = _WholeTraceback(shown, error, self._shell, is_block=is_block)
            raise
        finally:
            namespace.pop(CALL, None)
            namespace.pop(OUTCOME, None)

    def map(
        self,
        function: Callable[[Any], object],
        items: Sequence[object],
        options: Mapping[str, object],
        parallel: int | None,
    ) -> list[Outcome]:
        """Run `function` for each item; see `offload.Taker`."""
        resources = msgspec.structs.replace(resources_from_kwargs(options), usual_qos="batch")
        # One function for all of them: of each that is new, both sides would know for as long as the sweep lasts.
        source, call = f"{OUTCOME} = {CALL}({ITEM})", _wrap(function)
        tasks = [SweepTask(source, {CALL: call, ITEM: item}, OUTCOME) for item in items]
        try:
            return self._runner.run_sweep(tasks, resources, "gpu.map", parallel)
        except CannotSend as error:
            if error.name == ITEM:
                raise CannotSend(ITEM_WORD, error.path.replace(ITEM, ITEM_WORD), error.kind) from None
            raise
        except KeyboardInterrupt as stop:
            shown: Any = stop
            shown._render_traceback_ = _UserTraceback(stop, self._shell)
            raise

    def ran_here(self) -> None:
        """Say once that a block was not taken."""
        if not self._has_told_ran_locally:
            self._has_told_ran_locally = True
            show_note(self._shell, _LOCAL)


def _wrap(function: Callable[[Any], object]) -> Callable[[Any], object]:
    def call(item: object) -> object:
        return function(item)

    return call


class _WholeTraceback(RemoteTraceback):
    """The traceback in the notebook up to the work, then that in the work on the pool."""

    def __init__(
        self, remote: RemoteTraceback, error: BaseException, shell: InteractiveShell, *, is_block: bool
    ) -> None:
        super().__init__(remote.lines)
        self._error, self._shell, self._is_block = error, shell, is_block

    def __call__(self) -> list[str]:
        remote = list(self.lines)
        frames = _user_frames(self._error.__traceback__)
        if self._is_block:
            frames = frames[:-1]  # the other traceback shows the frame that the block stands in
        if not frames or len(remote) < _HEAD_LINES:
            return remote
        local = self._shell.InteractiveTB.structured_traceback(type(self._error), Exception(), _join(frames))
        return [*remote[:_HEAD_LINES], *local[_HEAD_LINES:-1], *remote[_HEAD_LINES:]]


class _UserTraceback:
    """The traceback of an exception as far as the user's own code goes, asked for when it is complete."""

    def __init__(self, error: BaseException, shell: InteractiveShell) -> None:
        self._error, self._shell = error, shell

    def __call__(self) -> list[str]:
        frames = _join(_user_frames(self._error.__traceback__))
        lines: list[str] = self._shell.InteractiveTB.structured_traceback(type(self._error), self._error, frames)
        return lines


#: How many lines of a traceback come before its frames: a rule, and the kind of the error.
_HEAD_LINES = 2


def _user_frames(at: TracebackType | None) -> list[TracebackType]:
    """Return the frames of the user's code, down to where ours begins."""
    frames: list[TracebackType] = []
    while at is not None:
        name = at.tb_frame.f_globals.get("__name__", "")
        if name.startswith(_OURS):
            break
        if not name.startswith("IPython."):
            frames.append(at)
        at = at.tb_next
    return frames


def _join(frames: Sequence[TracebackType]) -> TracebackType | None:
    traceback: TracebackType | None = None
    for entry in reversed(frames):
        traceback = TracebackType(traceback, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return traceback


class _GpuBlockTransformer(ast.NodeTransformer):
    """Rewrites the blocks of each cell; IPython calls it with the tree."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def visit(self, node: ast.AST) -> Any:
        """Return the cell with its blocks as functions."""
        if not isinstance(node, ast.Module):
            return node
        names = [name for name, value in self._shell.user_ns.items() if isinstance(value, Gpu)]
        modules = [name for name, value in self._shell.user_ns.items() if value is sys.modules.get("bulletin_magic")]
        return rewrite_gpu_blocks(node, names, modules)
