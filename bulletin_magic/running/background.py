"""`%%gpu --background`: a cell that runs while the notebook goes on, and what the notebook knows of it."""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from bulletin import state
from bulletin.errors import CannotReturn
from bulletin.ids import CellId
from bulletin.units import show_duration
from bulletin_magic.connection.deliveries import CellFinished
from bulletin_magic.connection.link import Link
from bulletin_magic.connection.session_events import CellSubmitted
from bulletin_magic.output.cell_outputs import CellOutputs, JupyterMessage
from bulletin_magic.output.notes import show_note
from bulletin_magic.output.output_history import OutputHistory
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.background_runner import BackgroundRunner, LiveLine, RunAnswer
from bulletin_magic.running.outcome import error_to_raise, saying_differences, show_stayed


class BackgroundCell:
    """A cell of this notebook that runs on the pool meanwhile.

    Its variables come into the notebook before the next cell that is run after it has ended, or with `result()`. What
    the notebook itself has changed meanwhile stays as it is there; what the cell made of it is in `vars`.
    """

    def __init__(
        self,
        cell: CellId,
        name: str | None,
        number: int,
        link: Link,
        shell: InteractiveShell,
        comms: WidgetComms,
        history: OutputHistory,
        keep_receipt: Callable[[CellFinished], None],
    ) -> None:
        self._name = name or f"background {number}"
        self._is_named = name is not None
        self._shell, self._line = shell, LiveLine(shell)
        self._runner = BackgroundRunner(
            self._name,
            link,
            shell,
            self._show_status,
            self._take_answer,
            comms=comms,
            on_view_message=self._refuse_view_message,
            record=self._record,
        )
        self._context = contextvars.copy_context()  # in which outputs belong to the cell that began it
        self._history, self._outputs = history, history.begin(cell)
        self._keep_receipt = keep_receipt
        self._has_told_of_widgets = False
        self._sent: state.Captured | None = None
        self._meanwhile: state.Meanwhile | None = None
        self._status = f"{self._name}: on its way"
        self._answer: RunAnswer | None = None
        self._is_over = threading.Event()
        self._is_applied = False
        self._apply_lock = threading.RLock()
        self._vars: dict[str, Any] = {}
        self._value: object = None
        self._error: BaseException | None = None

    # --- what a user does with it

    @property
    def status(self) -> str:
        """One line about where it is."""
        return self._status

    @property
    def vars(self) -> dict[str, Any]:
        """The variables that the cell bound or changed, by name. Waits for its end, as `result` does."""
        self._wait(None)
        self._apply()
        return dict(self._vars)

    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._is_over.is_set()

    def result(self, timeout_s: float | None = None) -> object:
        """Wait for the end; the value of the cell's last line. Its variables are then in the notebook.

        The stop button ends the waiting and not the cell: `cancel` does that.

        Raises
        ------
        TimeoutError
            If it has not ended after so many seconds.
        BaseException
            What the cell raised, or why it was lost.
        """
        self._wait(timeout_s)
        self._apply()
        if self._error is not None:
            raise self._error
        return self._value

    def cancel(self) -> None:
        """Stop the cell: an interrupt; called again, the end of its process."""
        if not self.done():
            self._runner.cancel()

    def __repr__(self) -> str:
        return self.status

    # --- what the notebook does

    def start(self, submitted: CellSubmitted, sent: state.Captured, meanwhile: state.Meanwhile) -> None:
        """Send it: with what was captured, and what is to be compared with the notebook when it has ended."""
        self._sent, self._meanwhile = sent, meanwhile
        self._runner.submit(submitted)
        self._runner.close()
        self._runner.start()

    def apply_if_done(self) -> None:
        """Bring its variables and say what came of it, once: before another cell runs."""
        if self.done() and not self._is_applied:
            self._apply()
            if self._error is not None:
                again = f" {self._name}.result() raises it." if self._is_named else ""
                show_note(self._shell, f"{self._name} failed: {_describe_error(self._error)}.{again}")

    def is_showing(self, outputs: CellOutputs) -> bool:
        """Tell whether these are the outputs of the cell, and more of them may come."""
        return outputs is self._outputs and not self.done()

    def continue_below(self, replay: Callable[[], None]) -> None:
        """Show what comes below the notebook's cell of now, after `replay` has shown there what came before."""

        def replay_with_status() -> None:
            self._line.show_below_this_cell(self._status)
            replay()
            self._context = contextvars.copy_context()

        self._runner.redirect_output(replay_with_status)

    def detach(self) -> None:
        """Leave the cell to itself, for another kernel: this one ends."""
        self._runner.detach()

    def close(self) -> None:
        """End the cell: its kernel ends."""
        self._runner.abort()

    def _refuse_view_message(self, _: object) -> bool:
        """Say once that nobody hears widgets of a running cell. False once it has ended: the notebook's own do then."""
        if self.done():
            self.apply_if_done()
            return False
        if not self._has_told_of_widgets:
            self._has_told_of_widgets = True
            text = f"{self._name} is still running: its widgets hear nobody until it has ended."
            self._context.run(show_note, self._shell, text)
        return True

    def _wait(self, timeout_s: float | None) -> None:
        if not self._is_over.wait(timeout_s):
            raise TimeoutError(f"{self._name} has not ended after {timeout_s} s: {self.status}")

    def _show_status(self, text: str) -> None:
        self._status = f"{self._name}: {text}"
        self._line.show(self._status)

    def _take_answer(self, _: BackgroundRunner, answer: RunAnswer) -> None:
        """Take in how the cell has ended. Called in the runner's thread."""
        self._answer = answer
        if isinstance(answer, CellFinished):
            ran = f"ran {show_duration(answer.ended.ran_ms)}{self._runner.location}"
            error = answer.ended.error
            if answer.ended.outcome == "returned":
                text = f"✓ {ran}. Its variables come with the next cell."
            else:
                text = f"✗ {error.name if error else answer.ended.outcome}, {ran}"
        else:
            text = f"✗ {answer}"
        self._status = f"{self._name}: {text}"
        self._is_over.set()  # before anybody can read that it is
        self._line.show(self._status)
        self._history.add_note(self._outputs, self._status)
        self._history.end(self._outputs)

    def _record(self, kind: str, message: JupyterMessage, size: int) -> None:
        self._history.add(self._outputs, kind, message, size)

    def _apply(self) -> None:
        """Bring what the cell came to into the notebook, once; views of widgets may ask for it in other threads."""
        with self._apply_lock:
            if not self._is_applied:
                self._is_applied = True
                self._apply_answer()

    def _apply_answer(self) -> None:
        answer = self._answer
        if isinstance(answer, BaseException):
            self._error = answer
            return
        assert isinstance(answer, CellFinished), "it was for any lease"
        self._keep_receipt(answer)
        if not answer.parts:
            self._error = error_to_raise(answer, None)
            return
        assert self._sent is not None, "it was sent before it could answer"
        namespace = self._shell.user_ns
        try:
            with saying_differences(answer):
                applied = state.apply(answer.parts, namespace, sent=self._sent, meanwhile=self._meanwhile)
        except CannotReturn as error:
            self._error = error
            return
        finally:
            self._sent = self._meanwhile = self._answer = None  # all that they keep alive
        mine = {name: namespace[name] for name in (*applied.changed, *applied.bound) if name in namespace}
        self._vars = mine | applied.aside
        self._value = applied.extra.get("result")
        show_stayed(applied.stayed, self._shell)
        if applied.aside:
            show_note(self._shell, self._describe_aside(sorted(applied.aside)))
        if answer.ended.outcome != "returned":
            self._error = error_to_raise(answer, applied.extra.get("error"))

    def _describe_aside(self, changed: list[str]) -> str:
        """Say which variables the notebook had changed meanwhile, and where the cell's values of them are."""
        listed = ", ".join(changed[:-1]) + (" and " if changed[:-1] else "") + changed[-1]
        was, stays = ("was", "stays") if len(changed) == 1 else ("were", "stay")
        location = f"{self._name}.vars[{changed[0]!r}]" if self._is_named else "the .vars of what that cell returned"
        return (
            f"{listed} {was} changed in the notebook while {self._name} ran, and {stays} as the notebook has it. "
            f"What {self._name} made of it is in {location}."
        )


def _describe_error(error: BaseException) -> str:
    text = str(error).removesuffix(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
