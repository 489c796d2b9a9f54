"""Histories that are kept as files: what once failed, and long ones in which much happens."""

from pathlib import Path

import pytest

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.journal import Told
from gpu_worker.scheduler.policy.projects import Project
from tests.scheduler import saved
from tests.scheduler.bench import SETTINGS, slots
from tests.scheduler.history_machines import Pool

KEPT = sorted(saved.KEPT.glob("*.jsonl"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_history_is_decided_as_it_was(path: Path) -> None:
    assert not saved.differs(path), "if that is meant, run: python -m tests.scheduler.crowd"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_history_keeps_every_promise(path: Path) -> None:
    saved.judge(path)


def test_kept_histories_are_small_and_have_a_digest() -> None:
    assert KEPT
    assert [path.name for path in KEPT if path.stat().st_size > 100_000] == []
    assert [path.name for path in KEPT if saved.read(path)[2] is None] == []


def test_a_digest_tells_two_decisions_apart(tmp_path: Path) -> None:
    told = [
        Told(0, ev.AgentJoined("a", "a", slots(1))),
        Told(1, ev.RequestSubmitted("r", "l", "s", "u", "p", "batch", 1)),
    ]
    path = saved.write(tmp_path / "h.jsonl", SETTINGS, told, saved.answers(SETTINGS, told))
    assert not saved.differs(path)
    settings = saved.read(path)[0]
    saved.write(path, settings, told, saved.answers(settings, told[:1]))
    assert saved.differs(path)


def test_a_history_that_fails_is_kept_and_fails_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "FAILED", tmp_path)

    class Misjudged(Pool):
        """Its referee was told of a project that the scheduler does not know."""

        def __init__(self) -> None:
            super().__init__()
            projects = self.bench.referee.projects
            projects.settings = SETTINGS.__class__(qos=SETTINGS.qos, projects=(Project(id="p", limit_milli=0),))  # type: ignore[arg-type]

    pool = Misjudged()
    pool.an_agent_joins("a", keeps=True, passed_ms=0)
    with pytest.raises(AssertionError) as failed:
        pool.a_kernel_asks(0, 1, "batch", "p", None, small=True)
    assert str(tmp_path / "Misjudged.jsonl") in failed.value.__notes__[0]
    settings, told, answered = saved.read(tmp_path / "Misjudged.jsonl")
    assert (settings, answered) == (pool.settings, None)
    assert [type(one.event).__name__ for one in told] == ["AgentJoined", "RequestSubmitted"]
