"""Groups that nobody named: projects by a rule at their first cell, through restarts, and never beyond their rule."""

import asyncio
import threading
from pathlib import Path

import pytest

from bulletin.ids import KernelId, ProjectId, RequestId, SessionId, UserName
from bulletin.wire import console, messages as wire
from bulletin.wire.messages.allowance_requests import AskAllowances, DecideAllowance, RequestAllowance
from bulletin.wire.messages.quota_edits import AskQuotaFile, EditQuotas, SettingEdit
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.identity import Person
from gpu_worker.broker.seen_groups import (
    FORGET_MS,
    MOST_GROUPS,
    MOST_OF_USER,
    SEEN,
    SeenGroups,
    TooManyGroups,
    readable,
)
from gpu_worker.quotas import QuotaChange, Quotas, difference
from gpu_worker.scheduler.policy.projects import Project
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, BrokerParts

RULES = """\
[projects.teaching]
limit = 3
[projects.staff]
limit = 8
[group_rules.courses]
groups = ["course-*"]
parent = "teaching"
limit = 2
user_limit = 1
walltime = "20 min"
budget = "10 GPU-hours per month"
[group_rules.labs]
groups = ["lab*"]
nest_by = "/"
user_limit = 1
"""
ML, BIO = (Person(user=UserName(name), groups=(f"course-{name}",)) for name in ("ml", "bio"))


@pytest.fixture
def file(broker: BrokerParts, tmp_path: Path) -> Path:
    path = tmp_path / "quotas.toml"
    path.write_text(RULES)
    broker.use_quota_file(path)
    return path


def reload(broker: BrokerParts) -> None:
    asyncio.run(broker.follower.load(broker.shell))


def written(broker: BrokerParts) -> None:
    """Let the ledger have what was to be written, as at the end of a broker."""
    broker.writer.close()


def refusal(broker: BrokerParts, person: Person, **asked: object) -> str:
    """What a kernel is told whose cell is refused."""
    message = wire.Submit(request=RequestId("1"), qos="interactive", **asked)  # type: ignore[arg-type]
    session = SessionId(f"s-{person.user}")
    assert not broker.learn(person, message.project or "")
    pending = PendingRequest(session, KernelId("k"), person, message, broker.now_ms)
    asyncio.run(broker.shell.submit(RequestId(f"{session}/1"), pending))
    told = [said for of, said in broker.to_sessions if of == session and isinstance(said, wire.Refusal)]
    return told[-1].sentence if told else ""


def test_a_group_that_nobody_named_has_what_its_rule_says_at_its_first_cell(broker: BrokerParts, file: Path) -> None:
    assert broker.project("course-ml") is None
    said = refusal(broker, ML, gpus=2)
    assert said == (
        "2 slots were asked for, and one user of project 'course-ml' may use 1 slot at most. Ask for fewer with --gpus."
        " To ask for it: `%gpu request --gpus 2 --why \"...\"`. 'course-ml' is a group that the rule 'courses' is for: "
        "each of them has limit 2 GPUs, user_limit 1 GPU, budget 10 GPU-hours per month, walltime 20 min, and no "
        "guarantee. For more than that an admin names it in the quota file."
    )
    course = broker.project("course-ml")
    assert course is not None
    assert (course.parent, course.rule, course.guaranteed_milli) == ("teaching", "courses", 0)


def test_what_the_rule_does_not_limit_is_refused_in_the_words_of_who_limits_it(broker: BrokerParts, file: Path) -> None:
    file.write_text(RULES.replace("user_limit = 1\nwalltime", "walltime").replace("limit = 2\n", ""))
    reload(broker)
    said = refusal(broker, ML, gpus=4)
    assert "project 'teaching' may use 3 slots at most" in said
    assert "rule" not in said
    too_long = refusal(broker, BIO, gpus=1, walltime_ms=25 * 60_000)
    assert "the rule 'courses' is for" in too_long
    assert "20 min" in too_long


def test_another_group_is_what_it_was_before_there_were_rules(broker: BrokerParts, file: Path) -> None:
    chess = Person(user=UserName("eve"), groups=("chess",))
    assert refusal(broker, chess, gpus=64) == ""
    assert broker.project("chess") == Project(id=ProjectId("chess"))


def test_a_group_counts_by_the_hubs_word_alone(broker: BrokerParts, file: Path) -> None:
    for person, name in (
        (ML, "course-other"),  # a project that she is not in: it is refused before anybody looks at its rule
        (Person(user=UserName("me"), is_owner=True), "course-own"),  # the pool's own user, who names any
        (Person(user=UserName("eve")), "default"),
    ):
        assert broker.learn(person, name) == ""
    assert broker.follower.policy.groups.groups == []


def test_a_changed_rule_holds_at_the_next_decision_also_for_who_waits(broker: BrokerParts, file: Path) -> None:
    assert refusal(broker, ML, gpus=1, walltime_ms=15 * 60_000) == ""
    file.write_text(RULES.replace('walltime = "20 min"', 'walltime = "10 min"'))
    reload(broker)
    _, told = broker.to_sessions[-1]
    assert isinstance(told, wire.Refusal)
    assert "10 min" in told.sentence
    file.write_text("")
    reload(broker)
    assert broker.project("course-ml") == Project(id=ProjectId("course-ml"))
    file.write_text(RULES.replace("[group_rules.courses]", "[group_rules.seminars]"))
    reload(broker)
    again = broker.project("course-ml")
    assert again is not None
    assert again.rule == "seminars"


def test_a_group_that_an_admin_names_is_no_longer_its_rules(broker: BrokerParts, file: Path) -> None:
    broker.learn(ML)
    path = ("projects", "course-ml", "guaranteed")
    broker.ask(ADMIN, EditQuotas(edits=(SettingEdit(path, 1),)))
    named = broker.project("course-ml")
    assert named == Project(id=ProjectId("course-ml"), guaranteed_milli=1000)
    broker.ask(ADMIN, EditQuotas(edits=(SettingEdit(path[:2], None),)))
    again = broker.project("course-ml")
    assert again is not None
    assert (again.rule, again.guaranteed_milli) == ("courses", 0)


def test_a_later_broker_knows_the_groups_of_an_earlier_one(broker: BrokerParts, file: Path) -> None:
    broker.learn(ML)
    broker.learn(Person(user=UserName("ann"), groups=("lab2/phd",)))
    written(broker)
    before = broker.follower.settings
    broker.use_quota_file(file)
    assert broker.follower.settings == before
    assert {one.id: one.parent for one in before.projects if one.rule} == {
        "course-ml": "teaching",
        "lab2": None,
        "lab2/phd": "lab2",
    }
    assert len(broker.ledger.event_payloads(SEEN)) == 2
    changes = [(one.who, one.what, one.before) for one in broker.ledger.config_changes()]
    assert ("ml", "project course-ml", None) in changes


def test_a_renamed_group_is_a_new_project_and_the_old_one_goes_when_nobody_needs_it(
    broker: BrokerParts, file: Path
) -> None:
    broker.learn(ML)
    broker.now_ms = FORGET_MS
    renamed = Person(user=ML.user, groups=("course-ai",))
    broker.learn(renamed)
    asyncio.run(broker.groups.forget())
    assert {one.name for one in broker.follower.policy.groups.groups} == {"course-ml", "course-ai"}
    broker.now_ms += 1
    asyncio.run(broker.groups.forget())
    assert {one.id for one in broker.follower.settings.projects if one.rule} == {"course-ai"}
    written(broker)
    broker.use_quota_file(file)
    assert {one.id for one in broker.follower.settings.projects if one.rule} == {"course-ai"}


def test_what_waits_keeps_its_group(broker: BrokerParts, file: Path) -> None:
    assert refusal(broker, ML, gpus=1) == ""
    broker.now_ms = FORGET_MS * 2
    asyncio.run(broker.groups.forget())
    assert [one.name for one in broker.follower.policy.groups.groups] == ["course-ml"]


def test_who_comes_at_the_same_time_waits_until_the_rule_holds(broker: BrokerParts, file: Path) -> None:
    async def come(user: str) -> str:
        await broker.groups.learn(Person(user=UserName(user), groups=("course-ml",)), ProjectId("course-ml"))
        found = broker.project("course-ml")
        return found.rule if found is not None else ""

    async def at_once() -> list[str]:
        *_, first, second = await asyncio.gather(broker.follower.load(broker.shell), come("ann"), come("bob"))
        return [str(first), str(second)]

    file.write_text(RULES + "# more\n")  # it is read meanwhile
    assert asyncio.run(at_once()) == ["courses", "courses"]


def test_who_comes_while_the_first_rules_are_being_read_has_what_they_say(
    broker: BrokerParts, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("[projects.teaching]\nlimit = 3\n")
    reload(broker)
    is_reading, go_on = threading.Event(), threading.Event()

    def compare(before: Quotas, after: Quotas) -> list[QuotaChange]:
        is_reading.set()
        go_on.wait()
        return difference(before, after)

    async def meanwhile() -> None:
        loading = asyncio.create_task(broker.follower.load(broker.shell))
        await asyncio.to_thread(is_reading.wait)
        coming = asyncio.create_task(broker.groups.learn(ML, ML.project))
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(loading, coming)

    monkeypatch.setattr("gpu_worker.broker.policy.difference", compare)
    file.write_text(RULES)
    asyncio.run(meanwhile())
    course = broker.project("course-ml")
    assert course is not None
    assert course.rule == "courses"


def test_somebody_with_two_groups_has_in_each_what_its_rule_says(broker: BrokerParts, file: Path) -> None:
    ann = Person(user=UserName("ann"), groups=("course-ml", "lab7"))
    assert broker.learn(ann, "course-ml") == broker.learn(ann, "lab7") == ""
    found = {one.id: (one.rule, one.user_limit_milli, one.walltime_ms) for one in broker.follower.settings.projects}
    assert found["course-ml"] == ("courses", 1000, 20 * 60_000)
    assert found["lab7"] == ("labs", 1000, None)


def test_who_renames_their_group_all_the_time_is_stopped_and_nobody_else(broker: BrokerParts, file: Path) -> None:
    for number in range(MOST_OF_USER):
        assert broker.learn(Person(user=UserName("eve"), groups=(f"course-{number}",))) == ""
    once_more = Person(user=UserName("eve"), groups=("course-free", "chess"))
    assert "You were the first in 50 groups" in broker.learn(once_more, "course-free")
    assert broker.learn(once_more, "chess") == "", "no rule is for it: it has what it always had"
    assert broker.learn(once_more, "staff") == ""
    assert broker.learn(ML) == ""
    assert broker.learn(Person(user=UserName("eve"), groups=("course-ml",))) == "", "others were there before"


def test_so_many_groups_are_known_in_all() -> None:
    groups = SeenGroups()
    for number in range(MOST_GROUPS):
        assert groups.note(f"g{number}", UserName(f"u{number}"), 0) is not None
    with pytest.raises(TooManyGroups, match=f"knows {MOST_GROUPS} groups"):
        groups.note("one-more", UserName("ann"), 0)
    assert groups.note("g1", UserName("ann"), 1) is None
    assert len(groups.forget((), FORGET_MS + 1)) == MOST_GROUPS - 1
    assert groups.note("one-more", UserName("ann"), FORGET_MS + 1) is not None


def test_of_properties_those_count_that_a_rule_can_ask_for() -> None:
    told = {"kind": "course", "open": True, "term": 2026, "who": ["ann"], "more": {}, "none": None, "long": "x" * 256}
    assert readable(told) == (("kind", "course"), ("open", "true"), ("term", "2026"))
    assert readable(None) == readable([]) == ()


def test_a_lead_by_the_hubs_word_leads_a_project_of_a_rule_and_its_file_stays_with_admins(
    broker: BrokerParts, file: Path
) -> None:
    lead = Person(user=UserName("lea"), groups=("course-ml",), leads=(ProjectId("course-ml"),))
    broker.learn(ML)
    asked = broker.ask(ML, RequestAllowance(walltime_ms=25 * 60_000, gpus=None, for_ms=None, why="a long one"))
    [row] = broker.ask(lead, AskAllowances()).rows
    assert row.may_decide
    assert broker.ask(lead, DecideAllowance(id=asked.rows[0].id, is_granted=True)).rows[0].state == "granted"
    assert refusal(broker, ML, gpus=1, walltime_ms=25 * 60_000) == ""
    stranger = Person(user=UserName("sam"), groups=("course-bio",), leads=(ProjectId("course-bio"),))
    assert broker.ask(stranger, AskAllowances()).rows == ()
    for question in (AskQuotaFile(), EditQuotas(edits=(SettingEdit(("group_rules", "courses", "limit"), 9),))):
        for person in (lead, ML):
            assert isinstance(broker.ask(person, question), wire.Refusal)
    assert file.read_text() == RULES


def test_a_lead_that_a_rule_names_leads_each_of_its_projects(broker: BrokerParts, file: Path) -> None:
    file.write_text(RULES.replace("limit = 2\n", 'limit = 2\nleads = ["office"]\n'))
    reload(broker)
    broker.learn(ML)
    broker.ask(ML, RequestAllowance(walltime_ms=25 * 60_000, gpus=None, for_ms=None, why="a long one"))
    office = Person(user=UserName("office"), may_be_named_lead=True)
    [row] = broker.ask(office, AskAllowances()).rows
    assert row.may_decide
    assert isinstance(broker.ask(office, AskQuotaFile()), wire.Refusal)


def test_who_asks_for_more_before_their_first_cell_asks_in_a_project_of_the_rule(
    broker: BrokerParts, file: Path
) -> None:
    said = broker.ask(ML, RequestAllowance(walltime_ms=None, gpus=3, for_ms=None, why="all"))
    assert isinstance(said, wire.Refusal)
    assert "Project 'course-ml' may use 2 GPUs at most" in said.sentence


def test_an_admin_sees_by_which_rule_a_project_is_there(broker: BrokerParts, file: Path) -> None:
    broker.learn(ML)
    rows = {row.project: row.rule for row in broker.ask(ADMIN, console.AskProjects()).projects}
    assert (rows["course-ml"], rows["teaching"]) == ("courses", "")
