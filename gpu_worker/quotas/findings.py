"""What is said about a quota file: every error and every warning with its line."""

import msgspec

from bulletin.errors import BadConfig
from gpu_worker.quotas.tree import KeyPath

#: After this many errors the rest is not looked for: most of them have one cause.
MOST_ERRORS = 200


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence about a quota file. An error stops the file from being used; a warning is obeyed all the same."""

    file: str
    line: int | None  #: counts from 1; None is the file as a whole
    key: KeyPath  #: as ("projects", "physics", "limit"); () where no name can be told
    sentence: str
    is_warning: bool = False

    def __str__(self) -> str:
        location = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{location}: {'warning: ' if self.is_warning else ''}{self.sentence}"


class UnusableQuotas(BadConfig):
    """A quota file has errors: its text names them, and `findings` has each with the setting that it is about."""

    findings: "tuple[Finding, ...]" = ()

    @classmethod
    def of(cls, findings: "Findings") -> "UnusableQuotas":
        """Make it of what was found."""
        error = cls(findings.text())
        error.findings = tuple(findings.errors)
        return error


class TooManyErrors(Exception):
    """So many errors were found that there is no use in looking for more."""


class Findings:
    """The errors and warnings of one file, gathered while it is read."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._errors: list[Finding] = []
        self._warnings: list[Finding] = []

    def add_error(self, line: int | None, key: KeyPath, sentence: str) -> None:
        """Note an error. Raises TooManyErrors after the last that is worth a line."""
        self._errors.append(Finding(file=self._file, line=line, key=key, sentence=sentence))
        if len(self._errors) >= MOST_ERRORS:
            raise TooManyErrors

    def add_warning(self, line: int | None, key: KeyPath, sentence: str) -> None:
        """Note a warning."""
        self._warnings.append(Finding(file=self._file, line=line, key=key, sentence=sentence, is_warning=True))

    @property
    def errors(self) -> list[Finding]:
        """All errors, in the order of the file."""
        return _in_order(self._errors)

    @property
    def warnings(self) -> list[Finding]:
        """All warnings, in the order of the file."""
        return _in_order(self._warnings)

    def text(self) -> str:
        """Return all errors, one a line, as "file:line: sentence"."""
        lines = [str(one) for one in self.errors]
        if len(lines) >= MOST_ERRORS:
            lines.append(f"{self._file}: There may be more errors. Correct these first.")
        return "\n".join(lines)


def _in_order(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: one.line or 0)
