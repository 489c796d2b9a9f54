"""What the last week would have been with other quotas, by the program that works it out, over a ledger with a week."""

import asyncio
import itertools
from pathlib import Path

import pytest

from bulletin.ids import ProjectId, SessionId, SlotId, UserName
from bulletin.wire.messages.quota_edits import PreviewQuotas, QuotaErrors, QuotaPreview, SettingEdit
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, HOUR_MS, BrokerParts
from tests.unit.gpu_worker.broker.ledger_records import record

NOW_MS = 1_790_000_000_000
TEXT = "[projects.club]\nlimit = 2\n[projects.lab]\n[qos.interactive]\ngrace = '1 s'\n"


@pytest.fixture
def week(broker: BrokerParts, tmp_path: Path) -> BrokerParts:
    """Two GPUs; the club's cells of half an hour fill them, the lab's of a minute come in between."""
    cells = []
    for hour, (project, user) in itertools.product(range(24), [("club", "a"), ("club", "b"), ("lab", "c")]):
        long = project == "club"
        at_ms = NOW_MS - 30 * HOUR_MS + hour * HOUR_MS // 2 + (0 if long else HOUR_MS // 10)
        held_ms = HOUR_MS // 2 - 1000 if long else 60_000
        cells.append(
            record(
                f"{user}-{hour}",
                session=SessionId(f"s-{user}"),
                user=UserName(user),
                project=ProjectId(project),
                qos="interactive",
                node="n1",
                slots=(SlotId("gpu-0"),),
                started_at_ms=at_ms,
                ended_at_ms=at_ms + held_ms,
                held_ms=held_ms,
                ran_ms=held_ms,
                spans=None,
                refunded_ms=0,
            )
        )
    broker.ledger.record(cells, NOW_MS)
    broker.now_ms = NOW_MS
    broker.join(slots=2)
    file = tmp_path / "quotas.toml"
    file.write_text(TEXT)
    broker.database = f"sqlite:///{tmp_path / 'ledger.db'}"
    broker.use_quota_file(file)
    return broker


def preview(broker: BrokerParts, value: object, *path: str) -> QuotaPreview:
    """Ask until it is worked out."""

    async def ask() -> QuotaPreview:
        while True:
            question = PreviewQuotas(edits=(SettingEdit(path, value),))  # type: ignore[arg-type]
            answer = await broker.console.answer(ADMIN, question)
            assert isinstance(answer, QuotaPreview), answer
            if answer.state != "working":
                return answer
            await asyncio.wait(broker.previews.tasks)

    return asyncio.run(ask())


def test_a_guarantee_makes_its_project_wait_less_and_who_borrows_lose_cells(week: BrokerParts) -> None:
    found = preview(week, 1, "projects", "lab", "guaranteed")
    assert (found.state, found.changes) == ("done", ("guaranteed of project 'lab': 0 GPUs -> 1 GPU",))
    rows = {row.project: row for row in found.rows}
    assert (rows["club"].cells, rows["lab"].cells) == (48, 24)
    assert rows["lab"].waited_then_ms < rows["lab"].waited_now_ms
    assert found.reclaims_then > found.reclaims_now
    assert found.sentence.startswith("72 cells of 3 users on 2 GPUs in the last 7 days would have waited")
    assert found.by_project.startswith("Sooner: lab (")
    assert "Later: club (" in found.by_project
    assert "would have been taken back, instead of" in found.sentence
    assert "+guaranteed = 1" in found.diff


def test_what_would_be_refused_or_cut_is_counted(week: BrokerParts) -> None:
    found = preview(week, "10 min", "projects", "club", "walltime")
    assert (found.cut_now, found.cut_then) == (0, 48)
    assert "48 cells would have been ended at their walltime, instead of 0." in found.sentence


def test_what_changes_nothing_says_so_and_nothing_is_in_force(week: BrokerParts) -> None:
    before = week.follower.settings
    assert preview(week, 60, "projects", "club", "limit").sentence.startswith(
        "Nothing would have been otherwise: 72 cells"
    )
    assert week.follower.settings == before


def test_an_empty_week_and_a_ledger_that_is_gone_are_said(broker: BrokerParts, tmp_path: Path) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text(TEXT)
    broker.database = f"sqlite:///{tmp_path / 'ledger.db'}"
    broker.use_quota_file(file)
    assert "No cell ran in the last 7 days" in preview(broker, 1, "projects", "lab", "limit").sentence
    broker.database = f"sqlite:///{tmp_path / 'none.db'}"
    broker.use_quota_file(file)
    found = preview(broker, 1, "projects", "lab", "limit")
    assert (found.state, "could not be worked out" in found.sentence) == ("failed", True)


def test_errors_and_strangers_get_no_preview(week: BrokerParts) -> None:
    question = PreviewQuotas(edits=(SettingEdit(("projects", "lab", "limit"), "x"),))
    assert isinstance(week.ask(ADMIN, question), QuotaErrors)
    assert "admin" in week.refusal(ANN, question)
