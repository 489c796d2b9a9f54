"""What is kept of hub groups: for how long they are known through restarts, and what the ledger has of them."""

import asyncio
from pathlib import Path

import pytest

from bulletin.ids import ProjectId, UserName
from bulletin.units import DAY_MS
from gpu_worker.broker.identity import Person
from gpu_worker.broker.retention import forget_some
from gpu_worker.broker.seen_groups import SEEN
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.ledger_records import record

ML = Person(user=UserName("ml"), groups=("course-ml",))


@pytest.fixture
def file(broker: BrokerParts, tmp_path: Path) -> Path:
    path = tmp_path / "quotas.toml"
    path.write_text('[projects.teaching]\n[group_rules.courses]\ngroups = ["course-*"]\nparent = "teaching"\n')
    broker.use_quota_file(path)
    assert asyncio.run(broker.groups.learn(ML, ProjectId("course-ml"))) is None
    return path


def restart(broker: BrokerParts, file: Path, after_ms: int) -> set[str]:
    """Start another broker so much later; which groups it knows after an hour."""
    broker.writer.close()
    broker.now_ms += after_ms
    broker.use_quota_file(file)
    asyncio.run(broker.groups.forget())
    return {one.name for one in broker.follower.policy.groups.groups}


def test_a_group_that_nobody_uses_is_forgotten_however_often_the_broker_is_restarted(
    broker: BrokerParts, file: Path
) -> None:
    assert restart(broker, file, 20 * DAY_MS) == {"course-ml"}
    assert restart(broker, file, 16 * DAY_MS) == set()
    assert restart(broker, file, DAY_MS) == set()


def test_a_group_with_a_cell_in_the_ledger_is_known_for_as_long_as_if_the_broker_had_never_stopped(
    broker: BrokerParts, file: Path
) -> None:
    ended_ms = 20 * DAY_MS
    broker.ledger.record([record("c1", project="course-ml", ended_at_ms=ended_ms)], at_ms=ended_ms)
    assert restart(broker, file, ended_ms + 34 * DAY_MS) == {"course-ml"}
    assert restart(broker, file, 2 * DAY_MS) == set()


def test_of_what_a_group_had_long_ago_the_last_stays(broker: BrokerParts, file: Path) -> None:
    """Whoever changes a property of a group writes it down each time."""
    groups = broker.groups
    other = Person(user=UserName("bio"), groups=("course-bio",))
    assert asyncio.run(groups.learn(other, ProjectId("course-bio"))) is None
    for day, kind in ((1, "course"), (2, "club"), (60, "course"), (61, "club")):
        broker.now_ms = day * DAY_MS
        news = broker.follower.policy.groups.note("course-ml", ML.user, broker.now_ms, (("kind", kind),))
        assert news is not None
        groups._keep(news, ML.user)
    broker.writer.close()
    before = len(broker.ledger.config_changes())
    assert forget_some(broker.ledger.database, 50 * DAY_MS) == 3 * 2
    assert forget_some(broker.ledger.database, 50 * DAY_MS) == 0
    kept = [(one["name"], dict(one["properties"])) for one in broker.ledger.event_payloads(SEEN)]
    assert kept == [("course-bio", {}), ("course-ml", {"kind": "course"}), ("course-ml", {"kind": "club"})]
    assert len(broker.ledger.config_changes()) == before - 3
