"""`%gpu on`: every cell that computes runs on the pool, and the notebook reads as if it had not been touched.

A cell keeps its own text in the history, in `In` and in tracebacks: what is replaced is its tree, after IPython has
parsed it, by a call of `%%gpu` with that text. What is no cell of the notebook (silent executions, those without a
history, such as the questions of a variable inspector, and cells that code runs) stays where it is.
"""

import ast
from typing import Any

import msgspec
from IPython.core.interactiveshell import ExecutionInfo, InteractiveShell

from bulletin.errors import BulletinError, NoPool
from bulletin.offload import is_off
from bulletin_magic.commands.off_mode import comment_out_gpu_line
from bulletin_magic.commands.options import parse
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.running.cell_classifier import computes

_CPU = "%%cpu"
_GPU_LINES = frozenset({"%%gpu", "%%GPU", "%%remote"})
_MEANWHILE = "Meanwhile, `%gpu off` runs cells here, and `%gpu on --fallback cpu` those that the pool does not run."


class EveryCellMode:
    """Where the cells of a notebook run that do not say it themselves. IPython calls it with each cell's tree."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        #: The options of every cell while the mode is on; None while it is off.
        self.options: str | None = None
        #: The cell that is about to run, and has not been looked at.
        self._text: str | None = None
        #: The text of the cell that the mode sends now.
        self._sent_text: str | None = None

    def install(self) -> None:
        """Let the mode be switched on, and `%%cpu` be understood."""
        self._shell.input_transformers_cleanup.extend(_LINE_COMMENTERS)
        self._shell.input_transformers_cleanup.insert(0, pad_lone_gpu_line)
        # The hook for trees is called for code that cells run, too; `pre_run_cell` tells which tree is a cell's own.
        self._shell.ast_transformers.insert(0, self)  # type: ignore[arg-type]  # it needs no more than `visit`
        self._shell.events.register("pre_execute", self._forget)
        self._shell.events.register("pre_run_cell", self._note_cell)

    def uninstall(self) -> None:
        """Leave the notebook as it was before `install`."""
        self.options = None
        transforms = self._shell.input_transformers_cleanup
        transformers: list[Any] = self._shell.ast_transformers
        transforms[:] = [one for one in transforms if one not in {*_LINE_COMMENTERS, pad_lone_gpu_line}]
        transformers[:] = [one for one in transformers if one is not self]
        for event, callback in (("pre_execute", self._forget), ("pre_run_cell", self._note_cell)):
            if callback in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, callback)

    def is_whole_cell(self, text: str) -> bool:
        """Tell whether this text is the cell that the mode sends now: all of it, with no `%%gpu` above."""
        return text == self._sent_text

    @property
    def kept(self) -> ResourceSpec | None:
        """What the notebook keeps between its cells (`%gpu on --keep`); None where it keeps nothing."""
        resources = None if self.options is None else parse(self.options).resources
        return resources if resources is not None and resources.keep_ms else None

    def choose(self, asked: ResourceSpec) -> ResourceSpec:
        """Choose what a cell runs on: what the notebook keeps, where the cell asks for nothing in particular."""
        kept = self.kept
        if kept is None or not asked.is_like(ResourceSpec()):
            return asked
        return msgspec.structs.replace(kept, label=asked.label or kept.label)

    def with_advice(self, error: BulletinError, text: str) -> BulletinError:
        """Return the error of a cell that the pool did not run; where the mode has sent it, with what to do."""
        if not isinstance(error, NoPool) or not self.is_whole_cell(text):
            return error
        return NoPool(error.problem, f"{error.remedy} {_MEANWHILE}")

    def _forget(self) -> None:
        """Forget the cell before: something else is about to run."""
        self._text = None
        self._sent_text = None

    def _note_cell(self, info: ExecutionInfo) -> None:
        """Note a cell that a person runs. IPython does not tell of silent ones."""
        is_cell = self.options is not None and info.store_history and isinstance(info.raw_cell, str)
        self._text = info.raw_cell if is_cell else None

    def visit(self, tree: Any) -> Any:
        """Return the tree to run: a call of `%%gpu` with the cell's text, or the tree itself where it stays here."""
        text = self._text
        self._text = None  # one tree for one cell: others are of code that the cell runs
        if text is None or self.options is None or is_off() or not isinstance(tree, ast.Module):
            return tree
        if _has_cpu_line(text) or not computes(tree, self._has_magic):
            return tree
        self._sent_text = text
        return _call_of_gpu(self.options, text)

    def _has_magic(self, kind: str, name: str) -> bool:
        manager: Any = self._shell.magics_manager
        return name in manager.magics[kind] or name in getattr(manager, "lazy_magics", {})


def comment_out_cpu_line(lines: list[str]) -> list[str]:
    """Make a remark of a `%%cpu` line above a cell, so that the rest is a cell like any other."""
    if lines and lines[0].strip() == _CPU and any(line.strip() for line in lines[1:]):
        return [f"# {lines[0].lstrip()}", *lines[1:]]
    return lines


def pad_lone_gpu_line(lines: list[str]) -> list[str]:
    """Give a cell that is nothing but a `%%gpu` line an empty line below: IPython would not ask us what it means."""
    written = [line for line in lines if line.strip()]
    is_lone = len(written) == 1 and written[0].split(maxsplit=1)[0] in _GPU_LINES
    return [written[0].rstrip("\n") + "\n", "\n"] if is_lone else lines


#: What makes a remark of the first line of a cell that runs in the notebook.
_LINE_COMMENTERS = (comment_out_cpu_line, comment_out_gpu_line)


def _has_cpu_line(text: str) -> bool:
    return text.lstrip().partition("\n")[0].strip() == _CPU


def _call_of_gpu(options: str, text: str) -> ast.Module:
    shell = ast.Call(ast.Name("get_ipython", ast.Load()), [], [])
    words: list[ast.expr] = [ast.Constant("gpu"), ast.Constant(options), ast.Constant(text)]
    call = ast.Call(ast.Attribute(shell, "run_cell_magic", ast.Load()), words, [])
    return ast.fix_missing_locations(ast.Module([ast.Expr(call)], []))
