"""What a lead may change: inside their project all that takes nothing from others; every way to more is tried."""

from pathlib import Path

import pytest

from bulletin.ids import ProjectId, UserName
from bulletin.wire.messages.quota_edits import (
    AskQuotaFile,
    AskQuotaLog,
    EditQuotas,
    QuotaErrors,
    QuotasEdited,
    SettingEdit,
    SettingValue,
    UndoQuotas,
)
from gpu_worker.broker.identity import Person
from gpu_worker.broker.known_ids import is_led
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, BrokerParts

TEXT = """\
[projects.faculty]
guaranteed = 8

[projects.course]  # of Lea
parent = "faculty"
guaranteed = 4
limit = 6
walltime = "2 h"
qos = ["interactive", "batch"]
leads = ["lea"]
node_pools = { h100 = 2 }

[projects.course-a]
parent = "course"
guaranteed = 2

[projects.course-b]
parent = "course"

[projects.rivals]  # the secret ones
parent = "faculty"
guaranteed = 2

[node_pools.h100]
gpu = "H100"
"""
#: Leads the course by a role of the hub alone: tokens of hers that lack the role do not say so.
RIA = Person(user=UserName("ria"), groups=("course-a",), leads=(ProjectId("course"),))
LEA = Person(user=UserName("lea"), groups=("course",), may_be_named_lead=True)


@pytest.fixture
def file(broker: BrokerParts, tmp_path: Path) -> Path:
    path = tmp_path / "quotas.toml"
    path.write_text(TEXT)
    broker.use_quota_file(path)
    return path


def edit(*settings: tuple[str, str, SettingValue]) -> EditQuotas:
    return EditQuotas(edits=tuple(SettingEdit(("projects", *key.split("/"), name), v) for key, name, v in settings))


@pytest.mark.parametrize(
    "settings",
    [
        [("course-b", "guaranteed", 2)],
        [("course-a", "guaranteed", 1), ("course-b", "guaranteed", 3)],
        [("course-a", "weight", 5), ("course-b", "limit", 1)],
        [("course-b", "walltime", "1 h"), ("course-b", "qos", ("batch",))],
        [("course-c", "parent", "course"), ("course-c", "user_limit", 1)],
        [("course", "user_limit", 1), ("course", "default_qos", "batch")],
        [("course-b", "parent", "course-a")],
        [("course-a/node_pools", "h100", 2)],
        [("course-b", "leads", ("bob",))],
    ],
    ids=str,
)
def test_a_lead_changes_what_is_inside(broker: BrokerParts, file: Path, settings: list) -> None:
    done = broker.ask(LEA, edit(*settings))
    assert isinstance(done, QuotasEdited), done
    assert "secret" not in done.diff


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([("course", "guaranteed", 5)], "of itself you set user_limit and default_qos"),
        ([("course", "limit", 99)], "An admin changes the rest"),
        ([("course", "leads", ("lea", "bob"))], "An admin changes the rest"),
        ([("course", "parent", None)], "An admin changes the rest"),
        ([("rivals", "guaranteed", 0)], "'rivals' is not inside a project that you lead: 'course'"),
        ([("faculty", "guaranteed", 1)], "is not inside"),
        ([("course-b", "guaranteed", 3)], "Inside 'course' 5 GPUs would be guaranteed, and it has 4 GPUs"),
        ([("course-a/node_pools", "h100", 2), ("course-b/node_pools", "h100", 1)], "3 GPUs would be guaranteed"),
        ([("course-b", "walltime", "4 h")], "walltime of 'course-b' would be 4 h, and 'course' has 2 h"),
        (
            [("course-b", "qos", ("long",))],
            "qos of 'course-b' would be 'long', and 'course' has 'interactive', 'batch'",
        ),
        ([("course-b", "lending_limit", 0)], "Only an admin sets lending_limit and keep_hot"),
        ([("course-b", "keep_hot", "1 h")], "Only an admin sets lending_limit and keep_hot"),
        ([("course-c", "parent", "course"), ("course-c", "keep_hot", "1 h")], "Only an admin sets"),
        ([("physics", "parent", "course"), ("physics", "limit", 0)], "may be somebody else's group"),
        ([("course-b", "parent", "faculty")], "is not inside a project that you lead"),
        ([("course-b", "parent", None), ("course-b", "weight", 3)], "not inside"),
        ([("course-d", "weight", 9)], "is not inside a project that you lead"),
    ],
    ids=str,
)
def test_a_lead_gets_no_more_and_touches_nobody_else(
    broker: BrokerParts, file: Path, settings: list, said: str
) -> None:
    if settings == [("course-b", "parent", None), ("course-b", "weight", 3)]:
        settings = [("course-b", "parent", "rivals"), ("course-b", "weight", 3)]
    found = broker.ask(LEA, edit(*settings))
    assert isinstance(found, QuotaErrors), found
    assert said in " ".join(one.sentence for one in found.errors)
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    "settings",
    [
        [("course-a", "auto_grant_walltime", "1 h")],
        [("course-c", "parent", "course"), ("course-c", "auto_grant_gpus", 2)],
        [("course-b", "auto_grants_per_week", 50)],
        [("course-a", "leads", ("ria",)), ("course-a", "auto_grant_walltime", "1 h")],
    ],
    ids=str,
)
def test_rules_that_grant_at_once_are_of_who_the_file_names(broker: BrokerParts, file: Path, settings: list) -> None:
    found = broker.ask(RIA, edit(*settings))
    assert isinstance(found, QuotaErrors), found
    assert "you lead it by a role of the hub" in found.errors[0].sentence
    assert file.read_text() == TEXT
    assert isinstance(broker.ask(LEA, edit(*settings)), QuotasEdited)


def test_who_leads_by_a_role_lowers_such_rules_and_adds_projects_that_have_them(
    broker: BrokerParts, file: Path
) -> None:
    rules = (("course", "auto_grant_walltime", "2 h"), ("course-a", "auto_grant_gpus", 4))
    assert isinstance(broker.ask(ADMIN, edit(*rules)), QuotasEdited)
    for change in (
        ("course-a", "auto_grant_gpus", 2),
        ("course-a", "auto_grant_gpus", None),
        ("course-c", "parent", "course"),
    ):
        assert isinstance(broker.ask(RIA, edit(change)), QuotasEdited)
    assert isinstance(broker.ask(RIA, edit(("course-a", "auto_grant_walltime", "1 h"))), QuotasEdited)
    undone = broker.ask(RIA, edit(("course-a", "auto_grant_walltime", None)))
    assert isinstance(undone, QuotaErrors), "it would have the two hours of the course again"


def test_class_hours_give_no_more_than_the_project_has_at_that_hour(broker: BrokerParts, file: Path) -> None:
    hours = {"days": ("Mon",), "from": "10:00", "until": "12:00", "time_zone": "Europe/Berlin"}

    def lecture(guaranteed: int, project: str) -> EditQuotas:
        settings = {**hours, "guaranteed": guaranteed}
        return edit(*((f"{project}/class_hours/lecture", name, value) for name, value in settings.items()))

    assert "Inside 'course' 5 GPUs" in broker.ask(LEA, lecture(3, "course-b")).errors[0].sentence
    assert isinstance(broker.ask(LEA, lecture(2, "course-b")), QuotasEdited)


def test_other_tables_are_an_admins(broker: BrokerParts, file: Path) -> None:
    for path, value in (
        (("qos", "interactive", "walltime"), "9 h"),
        (("prices", "H100"), 0.1),
        (("scheduler", "look_ahead"), 1),
        (("node_pools", "h100", "gpu"), "A100"),
    ):
        found = broker.ask(LEA, EditQuotas(edits=(SettingEdit(path, value),)))
        assert (found.errors[0].path[0], "Only an admin changes this" in found.errors[0].sentence) == (path[0], True)


def test_a_lead_sees_their_own_part_and_needs_a_token_that_may(broker: BrokerParts, file: Path) -> None:
    seen = broker.ask(LEA, AskQuotaFile())
    assert (seen.text, seen.projects) == ("", ("course", "course-a", "course-b"))
    assert {one.path[1] for one in seen.settings} == {"course", "course-a", "course-b"}
    of_server = Person(user=UserName("lea"), groups=("course",))
    for asked in (AskQuotaFile(), AskQuotaLog(), edit(("course-b", "weight", 2)), UndoQuotas()):
        assert "admin" in broker.refusal(of_server, asked)


def test_a_lead_undoes_their_own_and_not_an_admins(broker: BrokerParts, file: Path) -> None:
    broker.ask(ADMIN, edit(("rivals", "guaranteed", 1)))
    found = broker.ask(LEA, UndoQuotas())
    assert (isinstance(found, QuotaErrors), "rivals" in file.read_text()) == (True, True)
    assert broker.ask(LEA, AskQuotaLog()).versions == ()
    before = file.read_text()
    assert isinstance(broker.ask(LEA, edit(("course-b", "weight", 2))), QuotasEdited)
    (version,) = broker.ask(LEA, AskQuotaLog()).versions
    assert (version.by, version.changes) == ("lea", ("weight of project 'course-b': 1 -> 2",))
    assert isinstance(broker.ask(LEA, UndoQuotas()), QuotasEdited)
    assert file.read_text() == before


def test_a_named_lead_leads_at_the_command_line_too(broker: BrokerParts, file: Path) -> None:
    state, bob = broker.shell.scheduler.state, Person(user=UserName("bob"), may_be_named_lead=True)
    led = [one for one in ("faculty", "course", "course-a", "rivals") if is_led(state, LEA, ProjectId(one))]
    assert led == ["course", "course-a"]
    assert not is_led(state, bob, ProjectId("course"))
    assert not is_led(state, Person(user=UserName("lea")), ProjectId("course"))


def test_a_project_that_a_lead_takes_out_would_leave_the_limits_of_hers(broker: BrokerParts, file: Path) -> None:
    for gone in ("course-a", "course-b"):
        found = broker.ask(LEA, EditQuotas(edits=(SettingEdit(("projects", gone)),)))
        assert isinstance(found, QuotaErrors), found
        assert (found.errors[0].path, "Only an admin takes" in found.errors[0].sentence) == (("projects", gone), True)
    assert file.read_text() == TEXT
    assert isinstance(broker.ask(ADMIN, EditQuotas(edits=(SettingEdit(("projects", "course-b")),))), QuotasEdited)


def test_a_lead_undoes_a_project_that_she_has_added_and_none_that_an_admin_has(broker: BrokerParts, file: Path) -> None:
    assert isinstance(broker.ask(LEA, edit(("course-c", "parent", "course"))), QuotasEdited)
    assert isinstance(broker.ask(LEA, UndoQuotas()), QuotasEdited)
    assert file.read_text() == TEXT
    first = broker.ask(LEA, AskQuotaFile()).version
    assert isinstance(broker.ask(ADMIN, edit(("course-c", "parent", "course"))), QuotasEdited)
    assert isinstance(broker.ask(LEA, UndoQuotas()), QuotaErrors)
    assert isinstance(broker.ask(LEA, edit(("course-c", "limit", 1))), QuotasEdited)
    assert isinstance(broker.ask(LEA, UndoQuotas(to=first)), QuotaErrors)
    assert "course-c" in file.read_text()


@pytest.mark.parametrize(
    ("name", "value"), [("walltime", "1 h"), ("gpus_per_cell", 1), ("qos", ("batch",))], ids=lambda one: str(one)
)
def test_a_lead_whose_project_has_no_rule_sets_one_inside_it(
    broker: BrokerParts, file: Path, name: str, value: SettingValue
) -> None:
    file.write_text('[projects.faculty]\nleads = ["lea"]\n[projects.course]\nparent = "faculty"\n')
    assert isinstance(broker.ask(LEA, edit(("course", name, value))), QuotasEdited)
    assert isinstance(broker.ask(LEA, edit(("course", name, None))), QuotasEdited)


def test_a_file_that_an_admin_is_writing_is_no_leads_to_put_back_nor_to_read(broker: BrokerParts, file: Path) -> None:
    assert isinstance(broker.ask(LEA, edit(("course-b", "weight", 2))), QuotasEdited)
    half_done = file.read_text().replace("[projects.rivals]", '[projects.rivals]\nlimit = "a secret"')
    file.write_text(half_done)
    for asked in (UndoQuotas(), UndoQuotas(why="mine"), edit(("course-b", "weight", 3))):
        found = broker.ask(LEA, asked)
        assert isinstance(found, QuotaErrors), found
        assert "which an admin sees and corrects" in found.errors[0].sentence
        assert "secret" not in str(found)
    assert "secret" not in str(broker.ask(LEA, AskQuotaFile()))
    assert file.read_text() == half_done
    assert isinstance(broker.ask(ADMIN, UndoQuotas()), QuotasEdited)
