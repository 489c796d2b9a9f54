"""What a scheduler was told, as JSON lines, so that it can be told the same again. Replay is exact.

A journal is one or more lives of a scheduler. Each begins with its settings; then come the events with their times, as
they were handed to `step`. A digest of all that the scheduler answered may stand at the end of a life.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from bulletin.errors import BadConfig
from gpu_worker.scheduler.actions import Action
from gpu_worker.scheduler.events import Event
from gpu_worker.scheduler.policy.projects import SchedulerSettings

FORMAT = 1


class LifeBegan(msgspec.Struct, frozen=True, tag="Began", kw_only=True):
    """A life's first line: a scheduler began with these settings, and knew nothing else."""

    format: int = FORMAT
    settings: SchedulerSettings


class Told(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """An event and its time, as they were handed to `step`."""

    at_ms: int  #: in the time of `step`
    event: Event
    decides: bool = True


class AnswersDigest(msgspec.Struct, frozen=True, tag="Answered"):
    """A fingerprint of all actions that the scheduler answered in this life until now; see `Digest`."""

    digest: str


Line = LifeBegan | Told | AnswersDigest


class Digest:
    """A fingerprint of all actions, step by step: the same for two schedulers that decided the same."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, actions: Sequence[Action]) -> None:
        """Take in the answer to one event."""
        self._hash.update(msgspec.json.encode(actions) + b"\n")

    def __str__(self) -> str:
        return self._hash.hexdigest()


def encode(line: Line) -> bytes:
    """One line with its end."""
    return msgspec.json.encode(line) + b"\n"


def decode(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, Line]]:
    """Read the lines of a journal, each with its number from 1.

    A line may be torn where whoever wrote it was stopped: the last one, or the last one of a life. It is left out.

    Parameters
    ----------
    lines
        With their ends, as a binary file yields them.
    name
        Of the journal, for people.

    Raises
    ------
    BadConfig
        With the first other line that is not of a journal, or whose format this version does not read.
    """
    decoder = msgspec.json.Decoder(Line)
    bad: BadConfig | None = None
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            if bad is not None:
                raise bad from None
            bad = BadConfig(f"The journal {name} cannot be read at line {number}: {error}.")
            if not text.endswith(b"\n"):
                return
            continue
        if isinstance(line, LifeBegan) and line.format != FORMAT:
            raise BadConfig(
                f"The journal {name} has format {line.format} from line {number} on, and this Bulletin reads {FORMAT}."
            )
        if bad is not None and not isinstance(line, LifeBegan):
            raise bad
        bad = None
        yield number, line
    if bad is not None:
        raise bad
