"""Who may keep a place between cells, and in which class of service."""

from bulletin.ids import ProjectId, RequestId
from bulletin.units import MINUTE_MS
from bulletin.wire import messages as wire
from gpu_worker.broker.keep_rules import settle_class
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, Project, QoS, SchedulerSettings

LAB, CLUB = ProjectId("lab"), ProjectId("club")


def accounts(*more: QoS) -> Accounts:
    projects = (Project(id=LAB, default_qos="batch"), Project(id=CLUB, qos=("interactive",)))
    return Scheduler(SchedulerSettings(qos=(*DEFAULT_QOS, *more), projects=projects)).state.accounts


def asked(keep_ms: int, qos: str | None = None) -> wire.Submit:
    return wire.Submit(request=RequestId("r"), qos=qos or "reserved", is_qos_asked=qos is not None, keep_ms=keep_ms)


def test_who_names_no_class_keeps_in_one_that_never_borrows_whatever_the_projects_default() -> None:
    settled = settle_class(accounts(), LAB, asked(MINUTE_MS))
    assert isinstance(settled, wire.Submit)
    assert settled.qos == "reserved"
    assert isinstance(settled := settle_class(accounts(), LAB, asked(0)), wire.Submit)
    assert settled.qos == "batch", "who keeps nothing has the default as ever"


def test_a_class_that_borrows_keeps_nothing_even_where_the_file_says_so() -> None:
    loose = QoS(name="loose", priority=1, walltime_ms=MINUTE_MS, queued_per_user=1, keep_ms=MINUTE_MS)
    refused = settle_class(accounts(loose), LAB, asked(MINUTE_MS, "loose"))
    assert isinstance(refused, wire.Refusal)
    assert refused.sentence == "the QoS 'loose' keeps no place. Choose reserved."


def test_a_project_that_may_use_no_such_class_is_told_whom_to_ask() -> None:
    refused = settle_class(accounts(), CLUB, asked(MINUTE_MS))
    assert isinstance(refused, wire.Refusal)
    assert "'club' may use no QoS that keeps a place" in refused.sentence
    assert "ask who sets the quotas" in refused.sentence


def test_no_longer_than_the_class_lets_one() -> None:
    assert isinstance(settle_class(accounts(), LAB, asked(30 * MINUTE_MS)), wire.Submit)
    refused = settle_class(accounts(), LAB, asked(31 * MINUTE_MS))
    assert isinstance(refused, wire.Refusal)
    assert "keeps a place for 30 min after the last cell at most" in refused.sentence
