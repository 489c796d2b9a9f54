"""Histories as files: one that fails is kept, and each one that is kept here is judged again."""

from collections.abc import Sequence
from pathlib import Path

from gpu_worker.scheduler.journal import AnswersDigest, Digest, LifeBegan, Told, decode, encode
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.bench import Bench

KEPT = Path(__file__).parent / "histories"
#: Not in git: what failed here, to be looked at, and copied to those that are kept.
FAILED = Path(__file__).parents[2] / ".hypothesis" / "histories"


def answers(settings: SchedulerSettings, told: Sequence[Told]) -> AnswersDigest:
    """What the scheduler of today says to all of it."""
    scheduler, digest = Scheduler(settings), Digest()
    for one in told:
        digest.add(scheduler.step(one.event, one.at_ms))
    return AnswersDigest(str(digest))


def write(path: Path, settings: SchedulerSettings, told: Sequence[Told], answered: AnswersDigest | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [LifeBegan(settings=settings), *told, *([answered] if answered else [])]
    path.write_bytes(b"".join(map(encode, lines)))
    return path


def read(path: Path) -> tuple[SchedulerSettings, list[Told], AnswersDigest | None]:
    """A history of one life."""
    with path.open("rb") as file:
        lines = [line for _, line in decode(file, path.name)]
    began, told = lines[0], [line for line in lines if isinstance(line, Told)]
    assert isinstance(began, LifeBegan)
    answered = lines[-1] if isinstance(lines[-1], AnswersDigest) else None
    assert len(lines) == 1 + len(told) + (answered is not None), f"{path.name} has more than one life"
    return began.settings, told, answered


def judge(path: Path) -> None:
    """Play it again under the referee and the invariants."""
    settings, told, _ = read(path)
    bench = Bench(settings)
    for number, one in enumerate(told, 2):
        bench.now_ms = one.at_ms
        try:
            bench.say(one.event)
        except Exception as error:
            error.add_note(f"{path}, line {number}")
            raise
    bench.replay()


def digest_again(path: Path) -> None:
    """Write the history with the answers of today."""
    settings, told, _ = read(path)
    write(path, settings, told, answers(settings, told))


def differs(path: Path) -> bool:
    """Whether the scheduler decides otherwise than the file says."""
    settings, told, answered = read(path)
    return answered is not None and answers(settings, told) != answered
