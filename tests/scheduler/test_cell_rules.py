"""What one cell of a project may ask for: classes of service, GPUs, time; and what it has that asks for nothing."""

from typing import Any

import msgspec
import pytest

from bulletin.ids import LeaseId, ProjectId
from gpu_worker.scheduler.actions import (
    Evict,
    NeverInQuota,
    OverLimit,
    QoSNotAllowed,
    Refuse,
    TooLongForProject,
    TooManyPerCell,
)
from gpu_worker.scheduler.admission.cell_rules import choose_qos
from gpu_worker.scheduler.policy.projects import Budget, Project, QoS
from tests.scheduler.bench import MINUTE, SETTINGS, project, slots
from tests.scheduler.quota_bench import Quotas, changed

HOUR = 60 * MINUTE
COURSE = project("course", parent="dept")
DEPARTMENT = project("dept", qos=("interactive",), gpus_per_cell=2, walltime_ms=20 * MINUTE)


def refused(pool: Quotas, session: str, **how: object) -> str:
    name, _, user = session.partition(".")
    [action] = pool.ask(session, project=name, user=user, **how)  # type: ignore[arg-type]
    assert isinstance(action, Refuse)
    return str(action.reason)


def with_node(*projects: Project, number: int = 4, kind: str = "gpu", qos: tuple[QoS, ...] = SETTINGS.qos) -> Quotas:
    pool = Quotas(*projects, qos=qos)
    pool.join("a", slots(number, kind))
    return pool


def test_a_class_that_the_project_may_not_use_is_refused_with_those_that_it_may() -> None:
    pool = with_node(DEPARTMENT, COURSE)
    assert refused(pool, "course.ann", qos="batch") == (
        "project 'course' may not use QoS 'batch'. Choose interactive with --qos, or another project with --project."
    )
    assert refused(pool, "course.ann", qos="gold") == (
        "there is no QoS 'gold' in this pool. Choose interactive with --qos."
    )
    assert pool.wants("course.ann") == ["course.ann:1"]
    assert pool.wants("others.eve", qos="batch") == ["others.eve:1"], "nobody has said anything of others"


def test_who_is_in_no_other_project_is_not_told_to_choose_one() -> None:
    project_id = ProjectId("course")
    for reason, advice in (
        (QoSNotAllowed(project_id, "batch", ("interactive",)), "Choose interactive with --qos."),
        (TooLongForProject(project_id, 2 * HOUR, HOUR), "Ask for less with --time."),
        (TooManyPerCell(3, 2, project_id, "", False), "Ask for 2 or fewer with --gpus."),
        (OverLimit(project_id, 3000, 2000, True, False), "Ask for fewer with --gpus."),
        (OverLimit(project_id, 3000, 0, False, False), "ask an admin of the pool for a higher limit."),
        (NeverInQuota("reserved", project_id, 3000, 2000, False), "Choose another QoS with --qos."),
    ):
        assert reason.describe(has_other_projects=False).endswith(advice)
        assert "another project" in reason.describe(has_other_projects=True)


def test_an_inner_project_may_have_a_rule_of_its_own() -> None:
    lab = project("lab", parent="dept", qos=("batch", "interactive"), gpus_per_cell=4, walltime_ms=2 * HOUR)
    pool = with_node(DEPARTMENT, COURSE, lab)
    assert pool.wants("lab.ann", qos="batch", gpus=4, walltime_ms=2 * HOUR) == ["lab.ann:1"]
    assert "may not use QoS 'reserved'. Choose one of interactive, batch" in refused(pool, "lab.tom", qos="reserved")


def test_a_cell_has_no_more_gpus_than_its_project_allows() -> None:
    pool = with_node(DEPARTMENT, COURSE)
    assert refused(pool, "course.ann", gpus=3) == (
        "3 GPUs were asked for, and one cell in project 'course' may have 2 GPUs. Ask for 2 or fewer with --gpus, or "
        "choose another project with --project."
    )
    assert pool.wants("course.ann", gpus=2) == ["course.ann:1"]


def test_a_cell_has_no_more_gpus_than_its_class_allows() -> None:
    night = QoS(name="night", priority=1, walltime_ms=HOUR, queued_per_user=9, gpus_per_cell=1)
    pool = with_node(qos=(*SETTINGS.qos, night), number=2, kind="cpu")
    assert refused(pool, "lab.ann", qos="night", gpus=2) == (
        "2 CPU slots were asked for, and one cell in QoS 'night' may have 1 CPU slot. Ask for 1 with --gpus, or choose "
        "another QoS with --qos."
    )
    assert pool.wants("lab.ann", gpus=2) == ["lab.ann:1"]


def test_a_cell_on_a_cpu_has_no_gpus_to_count() -> None:
    pool = with_node(project("lab", gpus_per_cell=1))
    pool.join("b", slots(2, "cpu"))
    assert pool.wants("lab.ann", gpus=0) == ["lab.ann:1"]


def test_a_cell_runs_no_longer_than_its_project_allows() -> None:
    pool = with_node(DEPARTMENT, COURSE)
    assert refused(pool, "course.ann", walltime_ms=25 * MINUTE) == (
        "a walltime of 25 min is more than the 20 min that a cell of project 'course' may run. Ask for less with "
        "--time, or choose another project with --project."
    )
    assert "30 min that QoS 'interactive' gives" in refused(pool, "course.ann", walltime_ms=31 * MINUTE)
    [grant] = pool.ask("course.ann", project="course", user="ann")
    assert grant.walltime_ms == 20 * MINUTE, "what it gets that does not ask"  # type: ignore[union-attr]
    [grant] = pool.ask("course.tom", project="course", user="tom", walltime_ms=MINUTE)
    assert grant.walltime_ms == MINUTE  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rule", "asks", "words"),
    [
        ({"qos": ("batch",)}, {}, "may not use QoS 'interactive'. Choose batch"),
        ({"gpus_per_cell": 1}, {"gpus": 2}, "may have 1 GPU"),
        ({"walltime_ms": MINUTE}, {"walltime_ms": 2 * MINUTE}, "the 60 s that a cell"),
    ],
)
def test_who_waits_when_a_rule_comes_is_refused(rule: dict[str, Any], asks: dict[str, Any], words: str) -> None:
    pool = with_node(number=2)
    pool.busy("guests.eve", gpus=2)
    assert pool.wants("lab.ann", **asks) == []
    [action] = changed(pool, project("lab", **rule))
    assert isinstance(action, Refuse)
    assert words in str(action.reason)


def test_who_waits_and_did_not_ask_for_a_time_gets_what_the_rule_leaves() -> None:
    pool = with_node(number=1)
    pool.busy("guests.eve")
    assert pool.wants("lab.ann") == []
    assert changed(pool, project("lab", walltime_ms=MINUTE)) == []
    [grant] = pool.free("guests.eve:1")
    assert (grant.session, grant.walltime_ms) == ("lab.ann", MINUTE)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rule", "usual", "chosen"),
    [
        ({}, "interactive", "interactive"),
        ({}, "batch", "batch"),
        ({"default_qos": "reserved"}, "batch", "reserved"),
        ({"qos": ("batch", "reserved")}, "interactive", "batch"),
        ({"qos": ("interactive", "batch")}, "batch", "batch"),
    ],
)
def test_a_cell_that_names_no_class(rule: dict[str, Any], usual: str, chosen: str) -> None:
    pool = with_node(project("dept", **rule), COURSE)
    assert choose_qos(pool.scheduler.state.accounts, ProjectId("course"), usual) == chosen


def test_settings_of_before_there_were_such_rules_can_be_read() -> None:
    old = b'{"id": "lab", "guaranteed_milli": 1000}'
    assert msgspec.json.decode(old, type=Project) == project("lab", guaranteed_milli=1000)


@pytest.mark.parametrize(
    "rule", [{"walltime_ms": 10 * MINUTE}, {"gpus_per_cell": 1}, {"qos": ("batch",)}], ids=["time", "GPUs", "class"]
)
def test_a_hot_session_leaves_whose_next_cell_new_rules_forbid(rule: dict[str, Any]) -> None:
    pool = with_node(project("lab"), number=4)
    pool.busy("lab.ann", gpus=2)
    pool.busy("others.eve", gpus=2)
    assert pool.end("lab.ann:1") == []
    assert pool.end("others.eve:1") == []
    assert changed(pool, project("lab", limit_milli=2000)) == []
    assert changed(pool, project("lab", **rule)) == [Evict(LeaseId("lab.ann:1"))]


def test_who_waits_and_did_not_ask_for_a_time_is_judged_by_that_of_the_new_settings() -> None:
    pool = with_node(number=1)
    pool.busy("guests.eve")
    assert pool.wants("lab.ann") == []
    lab = project("lab", budget=Budget(10 * MINUTE, "day"))
    assert changed(pool, msgspec.structs.replace(lab, walltime_ms=5 * MINUTE)) == [], "a short one is paid for"
    [action] = changed(pool, lab)
    assert isinstance(action, Refuse)
    assert "30 min is more than" in str(action.reason)
