"""`%%gpu --background`: a cell that runs while the notebook goes on, and what the notebook knows of it."""

import contextvars
import threading
from collections.abc import Callable
from secrets import token_hex
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from bulletin import state
from bulletin.errors import CannotReturn
from bulletin.ids import CellId, RequestId
from bulletin.units import show_duration
from bulletin_magic.connection.deliveries import CellFinished
from bulletin_magic.connection.link import Link
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.connection.session_events import CellSubmitted
from bulletin_magic.output.cell_outputs import CellOutputs, JupyterMessage
from bulletin_magic.output.frontend import message_id
from bulletin_magic.output.notes import show_note
from bulletin_magic.output.output_history import OutputHistory
from bulletin_magic.output.output_writer import cell_number
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.background_runner import BackgroundRunner, LiveLine, RunAnswer
from bulletin_magic.running.outcome import error_to_raise, show_stayed


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
        shown: OutputHistory,
    ) -> None:
        self._name = name or f"background {number}"
        self._is_named = name is not None
        self._shell, self._line = shell, LiveLine(shell)
        self._apart = BackgroundRunner(
            self._name, link, shell, self._say, self._take, comms=comms, bring=self._bring, keep=self._keep
        )
        self._place = contextvars.copy_context()  # in which outputs belong to the cell that began it
        self._shown, self._showing = shown, shown.begin(cell)
        self._is_told = False
        self._sent: state.Captured | None = None
        self._meanwhile: state.Meanwhile | None = None
        self._text = f"{self._name}: on its way"
        self._answer: RunAnswer | None = None
        self._is_over = threading.Event()
        self._has_landed, self._landing = False, threading.RLock()
        self._vars: dict[str, Any] = {}
        self._value: object = None
        self._error: BaseException | None = None

    # --- what a user does with it

    @property
    def status(self) -> str:
        """One line about where it is."""
        return self._text

    @property
    def vars(self) -> dict[str, Any]:
        """The variables that the cell bound or changed, by name. Waits for its end, as `result` does."""
        self._wait(None)
        self._land()
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
        self._land()
        if self._error is not None:
            raise self._error
        return self._value

    def cancel(self) -> None:
        """Stop the cell: an interrupt; called again, the end of its process."""
        if not self.done():
            self._apart.cancel()

    def __repr__(self) -> str:
        return self.status

    # --- what the notebook does

    def start(self, asked: CellSubmitted, sent: state.Captured, meanwhile: state.Meanwhile) -> None:
        """Send it."""
        self._sent, self._meanwhile = sent, meanwhile
        self._apart.ask(asked)
        self._apart.close()
        self._apart.start()

    def land_if_done(self) -> None:
        """Before another cell runs: bring its variables, and say what came of it."""
        if self.done() and not self._has_landed:
            self._land()
            if self._error is not None:
                again = f" {self._name}.result() raises it." if self._is_named else ""
                show_note(self._shell, f"{self._name} failed: {_said(self._error)}.{again}")

    def shows(self, showing: CellOutputs) -> bool:
        """Whether this is what the cell shows, and more of it may come."""
        return showing is self._showing and not self.done()

    def show_here(self, replay: Callable[[], None]) -> None:
        """Show what comes below the cell that runs now, after `replay` has shown there what came before."""

        def before() -> None:
            self._line.say_here(self._text)
            replay()
            self._place = contextvars.copy_context()

        self._apart.move(before)

    def detach(self) -> None:
        """The kernel ends, and the cell goes on."""
        self._apart.detach()

    def _bring(self, _: object) -> bool:
        """The view of a widget of the cell has said something: the notebook's own hears it, once there is one."""
        if self.done():
            self.land_if_done()
            return False
        if not self._is_told:
            self._is_told = True
            text = f"{self._name} is still running: its widgets hear nobody until it has ended."
            self._place.run(show_note, self._shell, text)
        return True

    def close(self) -> None:
        """The kernel ends, and the cell with it."""
        self._apart.leave()

    def _wait(self, timeout_s: float | None) -> None:
        if not self._is_over.wait(timeout_s):
            raise TimeoutError(f"{self._name} has not ended after {timeout_s} s: {self.status}")

    def _say(self, text: str) -> None:
        self._text = f"{self._name}: {text}"
        self._line.say(self._text)

    def _take(self, _: BackgroundRunner, answer: RunAnswer) -> None:
        """In the other thread: it has ended."""
        self._answer = answer
        if isinstance(answer, CellFinished):
            ran = f"ran {show_duration(answer.ended.ran_ms)}{self._apart.at}"
            error = answer.ended.error
            if answer.ended.outcome == "returned":
                text = f"✓ {ran}. Its variables come with the next cell."
            else:
                text = f"✗ {error.name if error else answer.ended.outcome}, {ran}"
        else:
            text = f"✗ {answer}"
        self._text = f"{self._name}: {text}"
        self._is_over.set()  # before anybody can read that it is
        self._line.say(self._text)
        self._shown.note(self._showing, self._text)
        self._shown.end(self._showing)

    def _keep(self, kind: str, message: JupyterMessage, size: int) -> None:
        self._shown.take(self._showing, kind, message, size)

    def _land(self) -> None:
        with self._landing:  # what views say may come in threads of their own
            if not self._has_landed:
                self._has_landed = True
                self._bring_in()

    def _bring_in(self) -> None:
        answer = self._answer
        if isinstance(answer, BaseException):
            self._error = answer
            return
        assert isinstance(answer, CellFinished), "it was for any lease"
        if not answer.parts:
            self._error = error_to_raise(answer, None)
            return
        assert self._sent is not None, "it was sent before it could answer"
        namespace = self._shell.user_ns
        try:
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
        """What the notebook had changed meanwhile."""
        listed = ", ".join(changed[:-1]) + (" and " if changed[:-1] else "") + changed[-1]
        was, stays = ("was", "stays") if len(changed) == 1 else ("were", "stay")
        location = f"{self._name}.vars[{changed[0]!r}]" if self._is_named else "the .vars of what that cell returned"
        return (
            f"{listed} {was} changed in the notebook while {self._name} ran, and {stays} as the notebook has it. "
            f"What {self._name} made of it is in {location}."
        )


class BackgroundCells:
    """All background cells of a notebook."""

    def __init__(
        self, shell: InteractiveShell, connect: Callable[[str], Link], comms: WidgetComms, shown: OutputHistory
    ) -> None:
        """`connect` opens a link of its own to the pool, under this name."""
        self._shell, self._connect, self._comms, self._shown = shell, connect, comms, shown
        self._cells: list[BackgroundCell] = []
        self._number = 0
        shell.events.register("pre_run_cell", lambda _: self.land())

    def start(self, source: str, name: str | None, resources: ResourceSpec) -> BackgroundCell:
        """Send a cell with the variables as they are now; raises as a cell does that cannot be sent."""
        namespace = self._shell.user_ns
        captured = state.capture(namespace, state.needs(source, namespace), table=state.Table())
        self._number += 1
        link = self._connect(f"background-{self._number}")
        name_of_cell = CellId(token_hex(16))
        cell = BackgroundCell(name_of_cell, name, self._number, link, self._shell, self._comms, self._shown)
        meanwhile = state.depart(namespace, captured)
        asked = CellSubmitted(
            cell=name_of_cell,
            request=RequestId(token_hex(16)),
            source=source,
            number=cell_number(self._shell),
            parts=tuple(captured.parts),
            resources=resources,
            message=message_id(self._shell),
        )
        cell.start(asked, captured, meanwhile)
        self._cells.append(cell)
        if name is not None:
            namespace[name] = cell
        return cell

    @property
    def under_way(self) -> list[str]:
        """A line about each that has not ended."""
        return [cell.status for cell in self._cells if not cell.done()]

    def that_shows(self, showing: CellOutputs) -> BackgroundCell | None:
        """The cell that shows this, if it has not ended."""
        return next((cell for cell in self._cells if cell.shows(showing)), None)

    def land(self) -> None:
        """Bring the variables of those that have ended, in the order in which they were begun."""
        for cell in self._cells:
            cell.land_if_done()
        self._cells = [cell for cell in self._cells if not cell.done()]

    def detach(self) -> None:
        """The kernel ends, and the cells go on."""
        for cell in self._cells:
            cell.detach()

    def close(self) -> None:
        """The kernel ends."""
        for cell in self._cells:
            cell.close()
        self._cells.clear()


def _said(error: BaseException) -> str:
    text = str(error).removesuffix(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
