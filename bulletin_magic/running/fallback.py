"""A `%%gpu` cell that runs in the notebook after all, because the pool cannot run it: `--fallback cpu`."""

import ast
import inspect
from types import CodeType, TracebackType
from typing import Any, cast

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell

from bulletin.errors import (
    BulletinError,
    CannotSend,
    CannotStart,
    NoPool,
    NotAllowed,
    Refused,
    WaitedTooLong,
    name_kind,
)
from bulletin_magic.output.output_writer import cell_number
from bulletin_magic.running.outcome import RemoteTraceback

#: What the pool may say before anything of the cell has run.
NEVER_BEGAN = (NoPool, NotAllowed, Refused, WaitedTooLong, CannotSend)


def describe_fallback(error: BulletinError) -> str:
    """Write the line that says why the cell runs in the notebook."""
    match error:
        case NoPool() | NotAllowed() | WaitedTooLong():
            why = error.problem
        case CannotStart():
            why = error.reason
        case Refused():
            why = f"The pool refused the cell: {error.reason}"
        case CannotSend():
            why = f"{error.path} is {name_kind(error.kind)}, which cannot go to the pool."
        case _:
            why = str(error)
    return f"{why} The cell runs here instead, on the notebook's own computer."


def run_locally(shell: InteractiveShell, source: str, lines_above: int) -> None:
    """Run a cell's text in the notebook's variables; its last value is shown and remembered as ever.

    `lines_above` are those that stand above it in the notebook. What it raises has the traceback of the cell alone.

    Raises
    ------
    NoPool
        If it awaits something outside of a function: the notebook's loop is in use by the cell that asked.
    """
    name, statements, shown = _parse(shell, source, lines_above)
    last = None
    if shown is not None:
        last = _compile(shell, ast.Interactive([ast.copy_location(ast.Expr(shown), shown)]), name, "single")
    body = _compile(shell, ast.Module(statements, []), name, "exec")
    _run(shell, name, body, last, shell.user_global_ns, shell.user_ns)


def evaluate_locally(shell: InteractiveShell, source: str, namespace: dict[str, Any], lines_above: int) -> object:
    """Run a cell's text as `run_locally` does, with these variables; return the value of its last line, not shown."""
    name, statements, shown = _parse(shell, source, lines_above)
    last = None if shown is None else _compile(shell, ast.Expression(shown), name, "eval")
    return _run(shell, name, _compile(shell, ast.Module(statements, []), name, "exec"), last, namespace)


def _parse(shell: InteractiveShell, source: str, lines_above: int) -> tuple[str, list[ast.stmt], ast.expr | None]:
    """Return the file name of the cell, its statements, and the expression at its end whose value counts."""
    ipython, hook = cast("Any", shell), cast("Any", DisplayHook)
    python = "\n" * lines_above + ipython.transform_cell(source)
    name = ipython.compile.cache(python, cell_number(shell), raw_code=source)
    body = ipython.transform_ast(ipython.compile.ast_parse(python, filename=name)).body
    if body and isinstance(body[-1], ast.Expr) and not hook.semicolon_at_end_of_expression(source):
        return name, body[:-1], body[-1].value
    return name, body, None


def _run(
    shell: InteractiveShell, name: str, body: CodeType, last: CodeType | None, *namespaces: dict[str, Any]
) -> object:
    """Run the statements, then what stands last; return its value. `namespaces` are those of `exec`."""
    if any(code.co_flags & inspect.CO_COROUTINE for code in (body, last) if code is not None):
        raise NoPool("A cell with `await` outside of a function cannot run here from %%gpu.", "Put %%cpu above it.")
    try:
        exec(body, *namespaces)
        return None if last is None else eval(last, *namespaces)  # noqa: S307 - the user's own cell
    except BaseException as error:
        shown_error: Any = error
        error.__traceback__ = at = _strip_frames_above(error.__traceback__, name)
        lines = shell.InteractiveTB.structured_traceback(type(error), error, at)
        if not isinstance(error, SystemExit):
            shown_error._render_traceback_ = RemoteTraceback(tuple(lines))
        raise


def _compile(shell: InteractiveShell, tree: ast.mod, name: str, how: str) -> CodeType:
    compiler: Any = shell.compile
    with compiler.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if shell.autoawait else 0):
        code: CodeType = compiler(tree, name, how)
    return code


def _strip_frames_above(at: TracebackType | None, name: str) -> TracebackType | None:
    """Return the traceback without the frames that led to the cell."""
    while at is not None and at.tb_frame.f_code.co_filename != name:
        at = at.tb_next
    return at
