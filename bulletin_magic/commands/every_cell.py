"""`%gpu on`: every cell that computes runs on the pool, and the notebook reads as if it had not been touched.

A cell keeps its own text in the history, in `In` and in tracebacks: what is replaced is its tree, after IPython has
parsed it, by a call of `%%gpu` with that text. What is no cell of the notebook (silent executions, those without a
history, such as the questions of a variable inspector, and cells that code runs) stays where it is.
"""

import ast
from typing import Any

from IPython.core.interactiveshell import ExecutionInfo, InteractiveShell

from bulletin.errors import BulletinError, NoPool
from bulletin.offload import is_off
from bulletin_magic.commands.off_mode import keep_asking_cells_here
from bulletin_magic.running.cell_classifier import computes

_CPU = "%%cpu"
_LONE = frozenset({"%%gpu", "%%GPU", "%%remote"})
_MEANWHILE = "Meanwhile, `%gpu off` runs cells here, and `%gpu on --fallback cpu` those that the pool does not run."


class EveryCellMode:
    """Where the cells of a notebook run that do not say it themselves. IPython calls it with each cell's tree."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        #: The options of every cell while the mode is on; None while it is off.
        self.options: str | None = None
        #: The cell that is about to run, and has not been looked at.
        self._text: str | None = None
        self._sent: str | None = None

    def serve(self) -> None:
        """Begin: the mode can be switched on, and `%%cpu` is understood."""
        self._shell.input_transformers_cleanup.extend(_REMARKS)
        self._shell.input_transformers_cleanup.insert(0, keep_lone)
        self._shell.ast_transformers.insert(0, self)  # type: ignore[arg-type]  # it needs no more than `visit`
        self._shell.events.register("pre_execute", self._forget)
        self._shell.events.register("pre_run_cell", self._look)

    def stop(self) -> None:
        """Leave the notebook as it was before `serve`."""
        self.options = None
        transforms = self._shell.input_transformers_cleanup
        transformers: list[Any] = self._shell.ast_transformers
        transforms[:] = [one for one in transforms if one not in {*_REMARKS, keep_lone}]
        transformers[:] = [one for one in transformers if one is not self]
        for event, callback in (("pre_execute", self._forget), ("pre_run_cell", self._look)):
            if callback in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, callback)

    def sends(self, text: str) -> bool:
        """Whether this text is the cell that the mode sends now: all of it, with no `%%gpu` above."""
        return text == self._sent

    def advise(self, error: BulletinError, text: str) -> BulletinError:
        """The error of a cell that the pool did not run; where it was the mode that sent it, with what to do."""
        if not isinstance(error, NoPool) or not self.sends(text):
            return error
        return NoPool(error.problem, f"{error.remedy} {_MEANWHILE}")

    def _forget(self) -> None:
        self._text = self._sent = None

    def _look(self, info: ExecutionInfo) -> None:
        """Note a cell that a person runs. IPython does not tell of silent ones."""
        is_cell = self.options is not None and info.store_history and isinstance(info.raw_cell, str)
        self._text = info.raw_cell if is_cell else None

    def visit(self, tree: Any) -> Any:
        """The tree to run: a call of `%%gpu` with the cell's text, or the tree itself where it stays here."""
        text, self._text = self._text, None  # one tree for one cell: others are of code that the cell runs
        if text is None or self.options is None or is_off() or not isinstance(tree, ast.Module):
            return tree
        if _says_here(text) or not computes(tree, self._knows):
            return tree
        self._sent = text
        return _call_of_gpu(self.options, text)

    def _knows(self, kind: str, name: str) -> bool:
        manager: Any = self._shell.magics_manager
        return name in manager.magics[kind] or name in getattr(manager, "lazy_magics", {})


def keep_here(lines: list[str]) -> list[str]:
    """The cell as IPython runs it: a `%%cpu` above it is a remark, so that the rest is a cell like any other."""
    if lines and lines[0].strip() == _CPU and any(line.strip() for line in lines[1:]):
        return [f"# {lines[0].lstrip()}", *lines[1:]]
    return lines


def keep_lone(lines: list[str]) -> list[str]:
    """Give a cell that is nothing but a `%%gpu` line an empty line below: IPython would not ask us what it means."""
    written = [line for line in lines if line.strip()]
    is_lone = len(written) == 1 and written[0].split(maxsplit=1)[0] in _LONE
    return [written[0].rstrip("\n") + "\n", "\n"] if is_lone else lines


#: What makes a remark of the first line of a cell that runs here.
_REMARKS = (keep_here, keep_asking_cells_here)


def _says_here(text: str) -> bool:
    return text.lstrip().partition("\n")[0].strip() == _CPU


def _call_of_gpu(options: str, text: str) -> ast.Module:
    shell = ast.Call(ast.Name("get_ipython", ast.Load()), [], [])
    words: list[ast.expr] = [ast.Constant("gpu"), ast.Constant(options), ast.Constant(text)]
    call = ast.Call(ast.Attribute(shell, "run_cell_magic", ast.Load()), words, [])
    return ast.fix_missing_locations(ast.Module([ast.Expr(call)], []))
