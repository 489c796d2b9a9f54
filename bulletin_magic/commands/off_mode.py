"""`BULLETIN=off`: cells that ask for the pool run in the notebook, as if nobody had asked."""

import sys
from collections.abc import Sequence
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from bulletin.errors import BadOption
from bulletin.offload import Outcome, is_off
from bulletin_magic.commands.options import parse
from bulletin_magic.output.notes import show_note
from bulletin_magic.running.fallback import evaluate_locally
from bulletin_magic.running.sweeps import SweepTask

OFF = "Bulletin is off in this notebook (BULLETIN=off): all its cells run here."
_MAGICS = frozenset({"%%gpu", "%%GPU", "%%remote"})
#: Stands for a name that was not bound.
_ABSENT = object()


class LocalBackgroundCell:
    """A background cell that ran in the notebook at once: what `%%gpu --background` leaves, with its end known."""

    def __init__(self, name: str | None, cell: str, shell: InteractiveShell) -> None:
        """Run it. What it raises is kept for `result`."""
        namespace = shell.user_ns
        before = dict(namespace)
        self._name = name or "the cell"
        self._value: object = None
        self._error: BaseException | None = None
        try:
            self._value = evaluate_locally(shell, cell, namespace, lines_above=1)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the user's cell: `result` raises it
            self._error = error
            show_note(shell, f"{self._name} failed: {type(error).__name__}: {error}")
        if self._value is not None:
            sys.displayhook(self._value)
        hidden = shell.user_ns_hidden
        #: The variables that the cell bound, by name.
        self.vars: dict[str, Any] = {
            key: value
            for key, value in namespace.items()
            if before.get(key, _ABSENT) is not value and key not in hidden and key not in {"_", "__", "___"}
        }

    @property
    def status(self) -> str:
        """One line about where it is."""
        how = f"✗ {type(self._error).__name__}, ran" if self._error is not None else "✓ ran"
        return f"{self._name}: {how} here"

    def done(self) -> bool:
        """Whether it has ended: yes."""
        return True

    def result(self, timeout_s: float | None = None) -> object:  # noqa: ARG002 - as of one that runs on the pool
        """Return the value of the cell's last line, or raise what the cell raised; there is nothing to wait for."""
        if self._error is not None:
            raise self._error
        return self._value

    def cancel(self) -> None:
        """Do nothing: nothing is left to be stopped."""

    def __repr__(self) -> str:
        return self.status


def run_each_locally(tasks: Sequence[SweepTask], shell: InteractiveShell) -> list[Outcome]:
    """Run the tasks of `--each` one after the other; the names that they bind are theirs alone."""
    outcomes = []
    for task in tasks:
        namespace = {**shell.user_ns, **task.names}
        try:
            outcomes.append(Outcome(evaluate_locally(shell, task.source, namespace, lines_above=1)))
        except Exception as error:  # noqa: BLE001 - the user's cell: its error takes the place of its value
            outcomes.append(Outcome(error=error))
    return outcomes


def comment_out_gpu_line(lines: list[str]) -> list[str]:
    """Make a remark of a `%%gpu` line above a cell, unless its options ask for more than where to run it."""
    magic, _, options = lines[0].strip().partition(" ") if lines else ("", "", "")
    if magic not in _MAGICS or not is_off() or not any(line.strip() for line in lines[1:]):
        return lines
    try:
        asked = parse(options)
    except BadOption:  # the magic says what is wrong with it
        return lines
    if asked.is_plan or asked.is_background or asked.each:
        return lines
    return [f"# {lines[0].lstrip()}", *lines[1:]]
