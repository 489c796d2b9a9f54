"""Errors about which the user must do something: a value, an option, a request, a pool."""

from typing import Literal

from bulletin.codes import RefusalCode

from .base_error import BulletinError


class BadOption(BulletinError):
    """An option of %%gpu, or a line of %gpu (`magic` says which), that is not understood. Nothing has run."""

    code = "bad-option"

    def __init__(self, problem: str, magic: Literal["%%gpu", "%gpu"] = "%%gpu") -> None:
        super().__init__(problem, magic)
        self.problem, self.magic = problem, magic

    def __str__(self) -> str:
        if self.magic == "%gpu":
            return f"{self.problem} Nothing was done. `%gpu?` shows what there is."
        return f"{self.problem} Nothing was run. `%%gpu?` shows the options."


class CannotOffload(BulletinError):
    """What stands under `with gpu:` or `@gpu` cannot run anywhere but in its place. Nothing of it has run."""

    code = "cannot-offload"

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem} Nothing of it was run. {self.remedy}"


class SomeFailed(BulletinError):
    """Some elements of `gpu.map` failed. `results` has all values in order, and the errors in their places."""

    code = "some-failed"

    def __init__(self, results: list[object], failed: dict[int, BaseException]) -> None:
        super().__init__(results, failed)
        self.results, self.failed = results, failed

    def __str__(self) -> str:
        number, first = next(iter(self.failed.items()))
        said = f"{type(first).__name__}: {first}".removesuffix(".").removesuffix(": ")
        if len(self.failed) == len(self.results):
            return f"All {len(self.results)} elements failed; number {number} with {said}."
        return (
            f"{len(self.failed)} of {len(self.results)} elements failed; at first number {number}, with {said}. "
            "The others are done: `.results` of this error has all of them in order, and gpu.map(…, errors='return') "
            "returns them so."
        )

    def _render_traceback_(self) -> list[str]:
        """Show the traceback of the first failure, as it was where the element ran, then the sentence."""
        shown = getattr(next(iter(self.failed.values())), "_render_traceback_", list)
        return [*shown(), *super()._render_traceback_()]


class NotAllowed(BulletinError):
    """Who asks may not use the pool, or cannot be identified."""

    code = RefusalCode.NOT_ALLOWED

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem} Nothing was run."


class Refused(BulletinError):
    """The pool says that this request can never run. Nothing has run."""

    code = "refused"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"The pool refused the cell: {self.reason} Nothing was run; your variables are unchanged."


class CannotStart(Refused):
    """The pool granted the cell a slot, several times, and it could not begin there. Nothing has run."""

    code = "cannot-start"
    retryable = True

    def __str__(self) -> str:
        return f"{self.reason} Nothing was run; your variables are unchanged."


class NoPool(BulletinError):
    """There is no pool to send the cell to, and none could be started. Nothing has run."""

    code = "no-pool"
    retryable = True

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem} Nothing was run; your variables are unchanged. {self.remedy}"


class NotDone(BulletinError):
    """What was asked of the pool at the command line was not done, and nothing has changed."""

    code = "not-done"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class WaitedTooLong(BulletinError):
    """The cell waited for as long as its `--max-wait` allows, and was not begun. Nothing has run."""

    code = "waited-too-long"
    retryable = True

    def __init__(self, duration: str, slot_word: str) -> None:
        super().__init__(duration, slot_word)
        self.problem = f"No {slot_word} came free within {duration}."

    def __str__(self) -> str:
        return (
            f"{self.problem} Nothing was run; your variables are unchanged. Run it again later, or let it wait longer."
        )


class WalltimeReached(BulletinError):
    """The cell ran for as long as it may, and was interrupted. What it had done so far is in the notebook."""

    code = "walltime"

    def __init__(self, walltime: str) -> None:
        super().__init__(walltime)
        self.walltime = walltime

    def __str__(self) -> str:
        return (
            f"The cell was stopped at its walltime of {self.walltime}. What it had done so far is in your variables. "
            "Ask for more time with %%gpu --time, as far as your QoS gives it."
        )
