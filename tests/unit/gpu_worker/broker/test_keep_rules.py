"""Who may keep a place between cells, and in which class of service."""

import asyncio

import msgspec

from bulletin.codes import RefusalCode
from bulletin.ids import KernelId, ProjectId, RequestId
from bulletin.units import MINUTE_MS
from bulletin.wire import messages as wire
from gpu_worker.broker.keep_rules import settle_class
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, Project, QoS, SchedulerSettings
from tests.unit.gpu_worker.broker.broker_parts import TOKEN, BrokerParts

LAB, CLUB = ProjectId("lab"), ProjectId("club")


def accounts(*more: QoS) -> Accounts:
    projects = (Project(id=LAB, default_qos="batch"), Project(id=CLUB, qos=("interactive",)))
    return Scheduler(SchedulerSettings(qos=(*DEFAULT_QOS, *more), projects=projects)).state.accounts


def asked(keep_ms: int, qos: str | None = None) -> wire.Submit:
    return wire.Submit(request=RequestId("r"), qos=qos or "reserved", is_qos_asked=qos is not None, keep_ms=keep_ms)


def settle(request: wire.Submit, known: Accounts | None = None, project: ProjectId = LAB) -> wire.Submit | wire.Refusal:
    return settle_class(known or accounts(), project, request, has_gpus=False)


def test_who_names_no_class_keeps_in_one_that_never_borrows_whatever_the_projects_default() -> None:
    settled = settle(asked(MINUTE_MS))
    assert isinstance(settled, wire.Submit)
    assert settled.qos == "reserved"
    assert isinstance(settled := settle(asked(0)), wire.Submit)
    assert settled.qos == "batch", "who keeps nothing has the default as ever"


def test_a_class_that_borrows_keeps_nothing_even_where_the_file_says_so() -> None:
    loose = QoS(name="loose", priority=1, walltime_ms=MINUTE_MS, queued_per_user=1, keep_ms=MINUTE_MS)
    refused = settle(asked(MINUTE_MS, "loose"), accounts(loose))
    assert isinstance(refused, wire.Refusal)
    assert refused.sentence == "the QoS 'loose' keeps no place. Choose reserved."


def test_a_project_that_may_use_no_such_class_is_told_whom_to_ask() -> None:
    refused = settle(asked(MINUTE_MS), project=CLUB)
    assert isinstance(refused, wire.Refusal)
    assert "'club' may use no QoS that keeps a place" in refused.sentence
    assert "ask who sets the quotas" in refused.sentence


def test_no_longer_than_the_class_lets_one() -> None:
    assert isinstance(settle(asked(30 * MINUTE_MS)), wire.Submit)
    refused = settle(asked(31 * MINUTE_MS))
    assert isinstance(refused, wire.Refusal)
    assert "keeps a place for 30 min after the last cell at most" in refused.sentence


def test_what_costs_nothing_is_not_kept(broker: BrokerParts) -> None:
    """Nobody holds the processors and the memory of nodes with GPUs for hours, beside what a guarantee covers."""

    async def ask(gpus: int, keep_ms: int = MINUTE_MS) -> list[wire.Message]:
        hello = wire.Hello(protocol=wire.PROTOCOL, version="1", token=TOKEN, kernel=KernelId("k"))
        await broker.kernels.take(b"k", hello)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        broker.to_routes.clear()
        await broker.kernels.take(b"k", msgspec.structs.replace(asked(keep_ms), gpus=gpus))
        return [said for _, said in broker.to_routes]

    free = msgspec.structs.replace(asked(MINUTE_MS), gpus=0)
    assert isinstance(settle(free), wire.Submit), "slots of a pool without a GPU cost"
    broker.join()
    (refused,) = asyncio.run(ask(gpus=0))
    assert isinstance(refused, wire.Refusal)
    assert refused.code is RefusalCode.QOS_NOT_ALLOWED
    assert "a place without a GPU is not kept: it would cost nothing" in refused.sentence
    assert "or run the cells without --keep" in refused.sentence
    assert asyncio.run(ask(gpus=1)) == asyncio.run(ask(gpus=0, keep_ms=0)) == []
