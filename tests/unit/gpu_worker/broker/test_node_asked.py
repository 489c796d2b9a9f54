"""Asking for a node for oneself: what the refusal says, who decides, and that no rule grants it."""

import asyncio

import msgspec
import pytest

from bulletin.ids import ProjectId, UserName
from bulletin.units import DAY_MS
from bulletin.wire.messages.allowance_requests import AskAllowances, DecideAllowance, RequestAllowance
from gpu_worker.broker.allowance_limits import AllowanceTerms, refuse_what_all_have
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.refusal_advice import how_to_ask
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.exclusive_reasons import NotExclusive
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, Project
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, BrokerParts

MATHS = Project(
    id=ProjectId("maths"), limit_milli=4000, leads=(UserName("lea"),), auto_grant_gpus=8, auto_grant_walltime_ms=DAY_MS
)
NODE = RequestAllowance(gpus=2, is_exclusive=True, why="links")


def allowed(pool: BrokerParts, gpus: int = 2) -> bool:
    accounts = pool.shell.scheduler.state.accounts
    return accounts.allowances.is_exclusive(accounts.of(MATHS.id).project, UserName("ann"), gpus)


def test_a_person_decides_also_where_the_projects_rules_grant_as_many_gpus(ledger: Ledger) -> None:
    pool = BrokerParts(ledger, (MATHS,))
    pool.now_ms = 1_000 * DAY_MS
    [asked] = pool.ask(ANN, NODE).rows
    assert (asked.state, asked.is_exclusive, asked.needs_admin) == ("open", True, False)
    assert [one.id for one in pool.ask(ANN, NODE).rows] == [asked.id], "said again, it is the same"
    assert not allowed(pool)
    [granted] = pool.ask(ADMIN, DecideAllowance(id=asked.id, is_granted=True)).rows
    assert (granted.state, granted.is_exclusive) == ("granted", True)
    assert allowed(pool)
    assert not allowed(pool, gpus=3)
    again = BrokerParts(ledger, (MATHS,))
    again.now_ms = pool.now_ms
    asyncio.run(again.console.recall())
    assert allowed(again), "a broker that is started again knows it"
    pool.ask(ADMIN, DecideAllowance(id=asked.id, is_granted=False))
    assert not allowed(pool)
    assert [one.state for one in pool.ask(ANN, AskAllowances()).rows] == ["over"]


def test_a_node_larger_than_the_project_may_have_is_granted_by_nobody_and_how_large_is_to_be_said(
    ledger: Ledger,
) -> None:
    pool = BrokerParts(ledger, (MATHS,))
    pool.now_ms = 1_000 * DAY_MS
    assert "may use 4 " in pool.refusal(ANN, msgspec.structs.replace(NODE, gpus=8))
    assert "how many GPUs the node has" in pool.refusal(ANN, msgspec.structs.replace(NODE, gpus=None, walltime_ms=1000))


@pytest.mark.parametrize(("lets_all", "says"), [(True, "may have a node for themselves"), (False, "")])
def test_what_all_classes_let_everybody_have_is_not_asked_for(lets_all: bool, says: str) -> None:
    qos = [msgspec.structs.replace(one, can_be_exclusive=lets_all) for one in DEFAULT_QOS]
    accounts = Accounts((MATHS,), tuple(qos))
    wanted = AllowanceTerms(walltime_ms=None, gpus=2, for_ms=DAY_MS, is_exclusive=True)
    said = refuse_what_all_have(accounts, MATHS.id, wanted)
    assert says in said
    assert bool(said) is bool(says)


def test_the_refusal_of_a_cell_ends_with_the_line_that_asks() -> None:
    said = how_to_ask(NotExclusive("interactive", (), 4), ProjectId("maths"))
    assert said == ' To ask for it: `%gpu request --exclusive --gpus 4 --project maths --why "..."`.'


@pytest.mark.parametrize(
    ("nodes", "asked", "says"),
    [
        (
            (2, 4),
            {"gpus": 3},
            "Nobody can have this: --exclusive takes all of a node, and no node here has just 3 GPUs",
        ),
        ((2, 4), {"gpus": 2}, ""),
        ((), {"gpus": 3}, ""),
        ((2,), {"gpus": 4, "is_exclusive": False}, "the largest has 2 GPUs. Ask for 2 or fewer with --gpus."),
        ((2,), {"gpus": 2, "is_exclusive": False}, ""),
    ],
)
def test_what_no_node_has_is_asked_for_in_vain_and_granted_by_nobody(
    ledger: Ledger, nodes: tuple[int, ...], asked: dict[str, int], says: str
) -> None:
    pool = BrokerParts(ledger, (msgspec.structs.replace(MATHS, gpus_per_cell=1, auto_grant_gpus=None),))
    pool.now_ms = 1_000 * DAY_MS
    [before] = pool.ask(ANN, msgspec.structs.replace(NODE, **asked, why="before any node was there")).rows
    for number, size in enumerate(nodes):
        pool.join(f"n{number}", size)
    grant = DecideAllowance(id=before.id, is_granted=True)
    again = msgspec.structs.replace(NODE, **asked, for_ms=DAY_MS + 1)
    if says:
        assert says in pool.refusal(ANN, again)
        assert says in pool.refusal(ADMIN, grant)
    else:
        assert [one.state for one in pool.ask(ANN, again).rows] == ["open"]
        assert [one.state for one in pool.ask(ADMIN, grant).rows] == ["granted"]


def test_more_than_a_node_has_may_be_for_several_cells_at_once_where_a_users_limit_is_in_the_way(
    ledger: Ledger,
) -> None:
    pool = BrokerParts(ledger, (msgspec.structs.replace(MATHS, user_limit_milli=1000, auto_grant_gpus=None),))
    pool.now_ms = 1_000 * DAY_MS
    pool.join("n1", 2)
    [asked] = pool.ask(ANN, msgspec.structs.replace(NODE, gpus=4, is_exclusive=False)).rows
    assert asked.state == "open"
