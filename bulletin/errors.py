"""Every error that Bulletin raises on purpose, by who must act.

BulletinError                 code, retryable; the fields first, the sentence in __str__
├── the user
│   ├── CannotSend            a variable that the cell needs cannot leave the notebook
│   ├── CannotReturn          what the cell made cannot be loaded in the notebook
│   ├── ModulesTooLarge       the notebook's own modules are more source than may travel
│   ├── StayedBehind          a value was touched that is on the other side and cannot travel
│   ├── BadOption             an option of %%gpu is not understood
│   ├── CannotOffload         a block or a function cannot run anywhere but where it stands
│   ├── SomeFailed            of the elements of gpu.map, some failed
│   ├── NotAllowed            the hub does not let this user into the pool, or does not know the token
│   ├── Refused               the pool says that this request can never run
│   ├── NoPool                there is no pool to send the cell to
│   ├── NotDone               what was asked for at the command line was not done
│   ├── WaitedTooLong         no GPU came free for as long as the cell would wait
│   └── WalltimeReached       the cell ran for as long as it may
├── nobody: it happens
│   ├── CellLost              the executor, its node or the link went away while the cell ran
│   └── CellStopped           the user stopped the cell, and it had to be ended
├── the operator
│   ├── BadConfig             a setting, a file or a database that cannot be used
│   └── LedgerAway            the ledger's database does not answer
└── the peer
    ├── MalformedMessage      frames that are not a message of this link
    └── VersionMismatch       two versions of the protocol that do not understand each other

IllegalMove, InvariantBroken  bugs of ours; deliberately not BulletinErrors
"""

from typing import Any

from bulletin.codes import RefusalCode


class BulletinError(Exception):
    """What went wrong, as fields and as one sentence for the person who must act."""

    #: Travels and is counted. The sentence may improve; this may not.
    code: str = "error"
    #: True where the same call may succeed later, with nothing changed by the user.
    retryable = False

    def _render_traceback_(self) -> list[str]:
        """Show the sentence alone in a notebook: the frames between are ours and say nothing to the user."""
        return [f"{type(self).__name__}: {self}"]


#: What to do about a value that cannot travel, by the start of its type's name.
_ADVICE = {
    "_thread.lock": "Release it before the cell, or create it inside the cell.",
    "_thread.RLock": "Release it before the cell, or create it inside the cell.",
    "_io": "Read it before the cell, or open the file inside the cell.",
    "socket": "Open the connection inside the cell.",
    "sqlite3": "Connect inside the cell, or read what it needs into a DataFrame first.",
    "generator": "Make a list of it first, or create it inside the cell.",
    "coroutine": "Await it first, or create it inside the cell.",
}
_RUN_AGAIN = "Run the cell that made it again."


#: Types whose names say little to those who never made one.
_PLAIN_WORDS = {
    "_io.TextIOWrapper": "an open file",
    "_io.BufferedReader": "an open file",
    "_io.BufferedWriter": "an open file",
    "_io.BufferedRandom": "an open file",
    "_io.FileIO": "an open file",
    "_thread.lock": "a lock",
    "_thread.RLock": "a lock",
    "_queue.SimpleQueue": "a queue between threads",
    "socket.socket": "a network connection",
}


def name_kind(kind: str) -> str:
    """A type with its article, as a person says it: "a sqlite3.Connection", "an open file"."""
    return _PLAIN_WORDS.get(kind) or f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def _advise(kind: str) -> str | None:
    return next((advice for known, advice in _ADVICE.items() if kind.startswith(known)), None)


class CannotSend(BulletinError):
    """A variable that the cell needs cannot leave the notebook. Nothing has run."""

    code = "cannot-send"

    def __init__(self, name: str, path: str, kind: str) -> None:
        super().__init__(name, path, kind)
        self.name, self.path, self.kind = name, path, kind

    def __str__(self) -> str:
        is_nested = self.path != self.name
        advice = _advise(self.kind) or f"Create it inside the cell{f', or take it out of {self.name!r}' * is_nested}."
        if " that was lost " in self.kind:
            advice = _RUN_AGAIN
        return (
            f"%%gpu cannot send {self.name!r}: {self.path if is_nested else 'it'} is {name_kind(self.kind)}. "
            f"Nothing was run; your variables are unchanged. {advice}"
        )


class CannotReturn(BulletinError):
    """What the cell made cannot be loaded in the notebook. The notebook is as before the cell."""

    code = "cannot-return"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name, self.problem = name, problem

    def __str__(self) -> str:
        what = f"{self.name!r}" if self.name else "The result of the cell"
        return f"{what} could not be loaded in the notebook: {self.problem}. Your variables are as before the cell."


class ModulesTooLarge(BulletinError):
    """The sources of the notebook's own modules are more than may travel. Nothing has run."""

    code = "modules-too-large"

    def __init__(self, size_bytes: int, limit_bytes: int, largest: str, largest_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes, largest, largest_bytes)
        self.size_bytes, self.limit_bytes = size_bytes, limit_bytes
        self.largest, self.largest_bytes = largest, largest_bytes

    def __str__(self) -> str:
        return (
            f"%%gpu cannot send the notebook's own modules: they are {self.size_bytes / 1e6:.1f} MB of source, and "
            f"{self.limit_bytes / 1e6:.0f} MB may travel; the largest, {self.largest!r}, is "
            f"{self.largest_bytes / 1e6:.1f} MB. Nothing was run; your variables are unchanged. "
            "Install what you do not edit, or move its data to files that are not modules."
        )


class _Absent:
    """An attribute that a class does not have, though its base has; an instance may be given it."""

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError


class StayedBehind(BulletinError):
    """A value was touched that is on the other side, and cannot travel from there. `where` says what became of it.

    It comes in the midst of the user's own code, and is shown with the lines that led to it.
    """

    code = "stayed-behind"
    _render_traceback_ = _Absent()

    def __init__(self, path: str, kind: str, where: str) -> None:
        super().__init__(path, kind, where)
        self.path, self.kind, self.where = path, kind, where

    def __str__(self) -> str:
        if "lost" in self.where:
            advice = _RUN_AGAIN
        elif "pool" in self.where:
            advice = "Use it in a %%gpu cell."
        else:
            advice = _advise(self.kind) or "Create it inside the cell."
        return f"{self.path} is {name_kind(self.kind)} and {self.where}. {advice}"


class BadOption(BulletinError):
    """An option of %%gpu that is not understood. Nothing has run."""

    code = "bad-option"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
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
        """The first failure as it was there, then the sentence."""
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


class CellLost(BulletinError):
    """Something that the cell ran on went away. The notebook is as before the cell."""

    code = "cell-lost"
    retryable = True

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause

    def __str__(self) -> str:
        return f"{self.cause} Your variables are as before the cell; you can run it again."


class CellStopped(KeyboardInterrupt, BulletinError):
    """The user stopped the cell. The notebook is as before the cell."""

    code = "cell-stopped"

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how

    def __str__(self) -> str:
        return f"{self.how} Your variables are as before the cell."


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


class BadConfig(BulletinError):
    """A setting, a file or a database that cannot be used. For the operator."""

    code = "bad-config"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


class LedgerAway(BulletinError):
    """The server of the ledger's database does not answer. What was told to the ledger before is kept."""

    code = RefusalCode.LEDGER_AWAY
    retryable = True

    def __init__(self, database: str, problem: str) -> None:
        super().__init__(database, problem)
        self.database, self.problem = database, problem

    def __str__(self) -> str:
        return (
            f"The ledger at {self.database} does not answer: {self.problem}. "
            "Nothing that it was told is lost; start its server again."
        )


class MalformedMessage(BulletinError):
    """Frames that are not a message of this link: wrong count, size, version or content."""

    code = "malformed-message"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"malformed message: {self.problem}"


class VersionMismatch(BulletinError):
    """The two sides speak different versions of the protocol."""

    code = RefusalCode.VERSION_MISMATCH

    def __init__(self, theirs: int, ours: int, who: str) -> None:
        super().__init__(theirs, ours, who)
        self.theirs, self.ours, self.who = theirs, ours, who

    def __str__(self) -> str:
        older, newer = (self.who, "this side") if self.theirs < self.ours else ("this side", self.who)
        return (
            f"{self.who} speaks protocol {self.theirs} of Bulletin and this side speaks {self.ours}: "
            f"{older} is older than {newer} and must be upgraded."
        )


class IllegalMove(RuntimeError):
    """A life took a step that its table does not have: a bug of ours."""

    def __init__(self, was: str, to: str) -> None:
        super().__init__(was, to)
        self.was, self.to = was, to

    def __str__(self) -> str:
        return f"a move from {self.was} to {self.to} is not in the table"


class InvariantBroken(RuntimeError):
    """A promise or an index of the scheduler does not hold: a bug of ours."""
