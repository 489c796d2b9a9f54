"""A quota file changed through the broker: in force at once, kept, undone; refused at its setting; nobody's is lost."""

import asyncio
from pathlib import Path

import pytest

from bulletin.ids import ProjectId
from bulletin.wire.messages.quota_edits import (
    AskQuotaFile,
    AskQuotaLog,
    EditQuotas,
    QuotaErrors,
    QuotasChangedMeanwhile,
    QuotasEdited,
    SettingEdit,
    UndoQuotas,
)
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.quota_versions import KeptVersion, QuotaVersions
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, BrokerParts

TEXT = "# of the faculty\n[projects.maths]  # Ann's\nlimit = 3   # three\nguaranteed = 1\n"
LIMIT = ("projects", "maths", "limit")


@pytest.fixture
def file(broker: BrokerParts, tmp_path: Path) -> Path:
    path = tmp_path / "quotas.toml"
    path.write_text(TEXT)
    broker.use_quota_file(path)
    return path


def limit(broker: BrokerParts) -> int | None:
    return broker.shell.scheduler.state.accounts.by_id[ProjectId("maths")].project.limit_milli


def change(value: object, path: tuple[str, ...] = LIMIT, **more: str) -> EditQuotas:
    return EditQuotas(edits=(SettingEdit(path, value),), **more)  # type: ignore[arg-type]


def history(broker: BrokerParts) -> list[tuple[str, str, bool]]:
    return [(one.by, one.why, one.is_in_force) for one in broker.ask(ADMIN, AskQuotaLog()).versions]


def test_a_change_is_in_force_in_the_file_and_undone_in_one_step(broker: BrokerParts, file: Path) -> None:
    seen = broker.ask(ADMIN, AskQuotaFile())
    assert (seen.text, seen.obstacle, seen.errors) == (TEXT, "", ())
    assert SettingEdit(LIMIT, 3) in seen.settings
    done = broker.ask(ADMIN, change(8, version=seen.version, why="the\nexam"))
    assert isinstance(done, QuotasEdited)
    assert done.changes == ("limit of project 'maths': 3 GPUs -> 8 GPUs",)
    assert "-limit = 3   # three\n+limit = 8   # three" in done.diff
    assert file.read_text() == TEXT.replace("3   #", "8   #")
    assert limit(broker) == 8000
    assert history(broker)[0] == ("root", "the exam", True)
    undone = broker.ask(ADMIN, UndoQuotas(version=done.version))
    assert (undone.version, file.read_text(), limit(broker)) == (seen.version, TEXT, 3000)
    assert history(broker)[0] == ("root", f"back to version {seen.version}", True)
    again = broker.ask(ADMIN, UndoQuotas())
    assert (again.version, limit(broker)) == (done.version, 8000)


def test_a_wrong_value_is_refused_at_its_setting_and_nothing_changes(broker: BrokerParts, file: Path) -> None:
    before = file.stat().st_ino
    for value, path, said in (
        ("many", LIMIT, "projects.maths.limit is 'many'. Write a number of GPUs"),
        (0.5, LIMIT, "'maths' has 1 GPU guaranteed and a limit of 0.5 GPUs"),
        (-1, LIMIT, "Write a number of GPUs"),
        (float("nan"), LIMIT, "is no number"),
        (1, ("projects", "maths", "limits"), "Did you mean limit?"),
        (None, ("projects", "maths", "weight"), "nothing to take out"),
        ("x\n[projects.evil]\nguaranteed = 9\n", ("projects", "maths", "parent"), "name of another project"),
    ):
        found = broker.ask(ADMIN, change(value, path))
        assert isinstance(found, QuotaErrors)
        assert found.errors[0].path == path
        assert said in found.errors[0].sentence
    assert (file.read_text(), file.stat().st_ino, limit(broker)) == (TEXT, before, 3000)


def test_the_second_of_two_loses_nothing_and_is_told_what_changed(broker: BrokerParts, file: Path) -> None:
    seen = broker.ask(ADMIN, AskQuotaFile()).version
    broker.ask(ADMIN, change(8, version=seen))
    second = broker.ask(ADMIN, change(5, ("projects", "maths", "weight"), version=seen))
    assert isinstance(second, QuotasChangedMeanwhile)
    assert (second.by, second.changes) == ("root", ("limit of project 'maths': 3 GPUs -> 8 GPUs",))
    assert "weight" not in file.read_text()
    assert isinstance(
        broker.ask(ADMIN, change(5, ("projects", "maths", "weight"), version=second.version)), QuotasEdited
    )
    assert isinstance(broker.ask(ADMIN, UndoQuotas(version=seen)), QuotasChangedMeanwhile)


def test_many_who_change_it_at_once_each_keep_theirs(broker: BrokerParts, file: Path) -> None:
    async def all_at_once() -> None:
        asked = [change(number, ("projects", f"p{number}", "limit")) for number in range(1, 9)]
        answers = await asyncio.gather(*(broker.console.answer(ADMIN, one) for one in asked))
        assert all(isinstance(one, QuotasEdited) for one in answers)

    asyncio.run(all_at_once())
    assert all(f"[projects.p{number}]\nlimit = {number}\n" in file.read_text() for number in range(1, 9))
    assert len(history(broker)) == 9


def test_what_is_written_by_hand_is_kept_too_and_can_be_undone(broker: BrokerParts, file: Path) -> None:
    file.write_text(TEXT.replace("3   #", "7   #"))
    asyncio.run(broker.follower.load(broker.shell))
    assert (limit(broker), history(broker)[0][1]) == (7000, "written into the file by hand")
    broker.ask(ADMIN, UndoQuotas())
    assert file.read_text() == TEXT


def test_a_file_broken_by_hand_is_put_back_and_no_change_is_made_in_it(broker: BrokerParts, file: Path) -> None:
    file.write_text(TEXT + "limit = 'x\n")
    asyncio.run(broker.follower.load(broker.shell))
    assert limit(broker) == 3000
    assert broker.ask(ADMIN, AskQuotaFile()).errors
    assert "correct them by hand" in broker.ask(ADMIN, change(4)).errors[0].sentence
    assert isinstance(broker.ask(ADMIN, UndoQuotas()), QuotasEdited)
    assert file.read_text() == TEXT


def test_a_broker_that_starts_again_knows_who_changed_it(broker: BrokerParts, file: Path) -> None:
    broker.ask(ADMIN, change(8, why="exam"))
    known = history(broker)
    broker.use_quota_file(file)
    assert (limit(broker), history(broker)) == (8000, known)


def test_who_is_no_admin_sees_and_changes_nothing(broker: BrokerParts, file: Path) -> None:
    for asked in (AskQuotaFile(), AskQuotaLog(), change(9), UndoQuotas()):
        assert "admin" in broker.refusal(ANN, asked)
    assert file.read_text() == TEXT


def test_a_pool_without_a_file_says_how_to_have_one(broker: BrokerParts) -> None:
    assert "no quota file" in broker.refusal(ADMIN, AskQuotaFile())


def test_a_file_that_may_not_be_written_is_said_and_stays(broker: BrokerParts, file: Path) -> None:
    file.with_name("other").hardlink_to(file)
    assert "hard links" in broker.ask(ADMIN, AskQuotaFile()).obstacle
    assert "hard links" in broker.refusal(ADMIN, change(8))
    assert (file.read_text(), len(history(broker))) == (TEXT, 1)


def test_a_version_that_is_not_kept_is_said(broker: BrokerParts, file: Path) -> None:
    assert "is not kept" in broker.refusal(ADMIN, UndoQuotas(to="nothing"))
    assert "no version before" in broker.refusal(ADMIN, UndoQuotas())


def test_of_many_versions_the_oldest_go(ledger: Ledger) -> None:
    versions = QuotaVersions(ledger.database)
    for number in range(205):
        versions.keep(KeptVersion(version=f"v{number}", at_ms=number, who=ADMIN.user, changes=("a",) * 200), b"x")
    kept = versions.log(1000)
    assert (len(kept), kept[0].version, kept[-1].version) == (200, "v204", "v5")
    assert kept[0].changes[-1] == "and 100 more"
    versions.keep(KeptVersion(version="large", at_ms=0, who=ADMIN.user), b"y" * 21_000_000)
    assert [one.version for one in versions.log(9)] == ["large", "v204"]
