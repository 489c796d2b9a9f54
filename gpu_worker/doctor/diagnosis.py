"""One thing that is wrong with a set-up, in words: what, why it matters, what to do."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What a check has found. `check` is a word for programs; the sentences are for people."""

    check: str
    what: str
    why: str
    remedy: str
    #: `wrong` keeps people from working, or lets them do what they should not; `advice` may be as an admin wants it.
    level: Literal["wrong", "advice"] = "wrong"

    def __str__(self) -> str:
        return f"{self.level}: {self.what} {self.why} {self.remedy}"


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found, and what was looked at."""

    diagnoses: tuple[Diagnosis, ...]
    looked_at: tuple[str, ...]
    not_looked_at: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong; advice is not."""
        return all(one.level == "advice" for one in self.diagnoses)


def describe_examination(examination: Examination) -> Iterator[str]:
    """Say all that was found, one line each, what is wrong first; and what was looked at."""
    for one in sorted(examination.diagnoses, key=lambda one: one.level != "wrong"):
        yield _in_one_line(str(one))
    if not examination.diagnoses:
        yield "Nothing is wrong."
    yield from _listed("Looked at", examination.looked_at)
    yield from _listed("Not looked at", examination.not_looked_at)


def _listed(head: str, words: Iterable[str]) -> Iterator[str]:
    if words := list(words):
        yield _in_one_line(f"{head}: {'; '.join(words)}.")


def _in_one_line(text: str) -> str:
    """Replace what a terminal would obey: names of processes, files and kernels are as their owners wrote them."""
    return "".join(one if one.isprintable() else " " if one in "\n\t" else "?" for one in text)
