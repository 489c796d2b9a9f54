"""What a finished cell means for the notebook: its state is applied, its result remembered, its error raised."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from bulletin import state
from bulletin.errors import CannotReturn, WalltimeReached, name_kind
from bulletin.units import show_duration
from bulletin.wire.messages import ErrorText
from bulletin_magic.connection.deliveries import CellFinished
from bulletin_magic.output.exit_advice import leave_out_exit_advice
from bulletin_magic.output.notes import show_note
from bulletin_magic.output.output_writer import remember_result
from bulletin_magic.running.shared_state import SharedState


class RemoteTraceback:
    """Shows an exception with the traceback of where it was raised: IPython asks for the lines."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        self.lines = lines

    def __call__(self) -> list[str]:
        """Return the lines of the traceback, for `_render_traceback_`."""
        return list(self.lines)


class RemoteError(Exception):
    """An exception of a cell that could not travel itself: its class's name and its message."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(name, value)
        self.name, self.value = name, value

    def __str__(self) -> str:
        return self.value


def apply_finished(
    finished: CellFinished, sent: state.Captured, shared_state: SharedState, shell: InteractiveShell
) -> None:
    """Bring the cell's state into the notebook, all of it or nothing, then raise what the cell raised.

    Raises
    ------
    CannotReturn
        If it cannot be loaded here; the notebook is then as before the cell.
    BaseException
        What the cell raised, of the user's own class, with its traceback as it was there.
    """
    if not finished.parts:
        shared_state.forget()
        raise error_to_raise(finished, None)
    with saying_differences(finished):
        applied = shared_state.apply(finished.parts, shell.user_ns, sent, finished.lease.lease_id)
    remember_result(shell, applied.extra.get("result"))
    show_stayed(applied.stayed, shell)
    usage = finished.ended.usage
    if finished.ended.outcome == "interrupted" and usage is not None and usage.walltime_ms is not None:
        raise WalltimeReached(show_duration(usage.walltime_ms))
    if finished.ended.outcome != "returned":
        error = error_to_raise(finished, applied.extra.get("error"))
        leave_out_exit_advice(shell, error)
        raise error


@contextmanager
def saying_differences(finished: CellFinished) -> Iterator[None]:
    """Have what cannot be loaded here say how the cell's environment differs: that may be why."""
    try:
        yield
    except CannotReturn as error:
        error.differences = finished.environment.sentences
        raise


def show_stayed(stayed: Iterable[state.Stayed], shell: InteractiveShell) -> None:
    """Say what could not come to the notebook."""
    # The cell's value was shown, and nobody has given it a name; what several names lead to is said once.
    told = [one for one in stayed if one.name != "_"]
    for path, kind in dict.fromkeys((one.path, one.kind) for one in told if one.path):
        show_note(shell, describe_stayed(path, kind))
    for one in told:
        if not one.path:
            show_note(shell, describe_lost_result(one.why))


def describe_stayed(path: str, kind: str) -> str:
    """Write one sentence about a value that could not come back; `path` is as one writes it: `box[0]`."""
    return (
        f"{path} is {name_kind(kind)}, which cannot come to the notebook. It stays on the pool, for %%gpu cells to use."
    )


def describe_lost_result(why: str) -> str:
    """Write what became of the value of a cell's last line that failed to load, with `why`."""
    return (
        f"The value of the cell's last line fails to load here ({why}), and Out has a handle in its place. "
        f"All else of the cell has come. With a name such a value stays on the pool, for %%gpu cells to use."
    )


def error_to_raise(finished: CellFinished, travelled: object) -> BaseException:
    """Return the exception itself where it travelled, else one of the same name, with the cell's own traceback."""
    text = finished.ended.error
    if isinstance(travelled, SystemExit):
        return travelled  # IPython has its own words for it
    # These do not go as themselves: IPython would show them in its own way, among frames of ours, asking nobody.
    is_shown_otherwise = isinstance(travelled, SyntaxError | BaseExceptionGroup) and text is not None
    if (
        isinstance(travelled, BaseException)
        and not is_shown_otherwise
        and (text is None or _set_traceback(travelled, text))
    ):
        return travelled
    if finished.ended.outcome == "interrupted":
        error: BaseException = KeyboardInterrupt()
    else:
        name = text.name if text else "RemoteError"
        error = type(name, (RemoteError,), {"__module__": __name__})(name, text.value if text else "")
    if text is not None:
        _set_traceback(error, text)
    return error


def _set_traceback(error: BaseException, text: ErrorText) -> bool:
    """Give the error the traceback that it had in the cell. False: its class takes no attributes."""
    shown: Any = error
    try:
        shown._render_traceback_ = RemoteTraceback(text.traceback)
    except (AttributeError, TypeError):  # a class that takes no attributes
        return False
    return True
