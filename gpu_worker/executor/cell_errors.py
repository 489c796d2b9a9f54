"""Errors of a cell that are none of its code: what the user reads in place of a traceback."""

from bulletin.errors import CannotSend, MalformedMessage
from bulletin.state.load_transaction import NotHere
from bulletin.wire.messages import ErrorText

_UNCHANGED = "Nothing was run; your variables are unchanged."
_GONE = "The first notebook had taken the results of the cell, and they are not kept for another."


def cannot_take_in(error: BaseException) -> ErrorText:
    """Say why the state of a cell could not become variables here."""
    cause = error.__cause__ if isinstance(error, CannotSend) else error
    if isinstance(cause, NotHere) and isinstance(cause.__cause__, ModuleNotFoundError):
        cause = cause.__cause__
    match cause:
        case ModuleNotFoundError() as missing:
            why = (
                f"The cell's variables need the module {missing.name!r}, which the environment of this pool does not "
                f"have. {_UNCHANGED} Install it there, or use an environment that has it."
            )
        case MemoryError():
            why = f"The cell's variables do not fit into the memory of the node. {_UNCHANGED} Send less with the cell."
        case MalformedMessage():
            why = f"The cell's variables arrived damaged ({error}). {_UNCHANGED}"
        case _ if isinstance(error, CannotSend):
            why = str(error)
        case _:
            why = f"The cell's variables could not be loaded on the node: {type(error).__name__}: {error}. {_UNCHANGED}"
    return ErrorText(name="CannotSend", value=why, traceback=(f"CannotSend: {why}",))


def refused_before(why: str) -> ErrorText:
    """Say why a cell is not run, in a sentence or two that are given."""
    text = f"{why} {_UNCHANGED}"
    return ErrorText(name="CannotSend", value=text, traceback=(f"CannotSend: {text}",))


def never_began() -> ErrorText:
    """Say that the cell was stopped before it began."""
    return ErrorText(name="KeyboardInterrupt", value="", traceback=("KeyboardInterrupt: the cell had not begun",))


def cannot_hand_back(error: Exception) -> ErrorText:
    """Say that what a cell made could not be pickled."""
    problem = f"{type(error).__name__}: {error}"
    why = f"What the cell made could not be sent back: {problem}. Your variables are as before the cell."
    return ErrorText(name="CannotReturn", value=why, traceback=(f"CannotReturn: {why}",))


def results_are_gone() -> ErrorText:
    """Say that no other notebook can have the results of a cell any more."""
    return ErrorText(name="CannotReturn", value=_GONE, traceback=(f"CannotReturn: {_GONE}",))
