"""A lab has its own node first: what is guaranteed in a node pool comes back there within the grace, whoever has it."""

import random

import pytest

from bulletin.ids import AgentId, ProjectId
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.policy.projects import NodePool, Project, SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, crowd
from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.judge import Judge
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, Seen, at, notebook, see
from tests.scheduler.promises.stories import owed_too_long

H100, L4 = "NVIDIA H100 80GB HBM3", "NVIDIA L4"
POOL = NodePool(name="h100", words=("h100",))


def project(name: str, gpus: int = 0, h100: int = 0, parent: str | None = None) -> Project:
    inside = (("h100", 1000 * h100),) if h100 else ()
    above = None if parent is None else ProjectId(parent)
    return Project(id=ProjectId(name), parent=above, guaranteed_milli=1000 * gpus, pool_guarantees=inside)


def pools(*projects: Project, pool: NodePool = POOL) -> SchedulerSettings:
    return SchedulerSettings(projects=projects, node_pools=(pool,))


def two_nodes(gpus: int = 4) -> list[hi.At]:
    return [
        at(0, hi.Joins(AgentId("fast"), hi.gpus(gpus, H100))),
        at(0, hi.Joins(AgentId("slow"), hi.gpus(gpus, L4))),
    ]


def nodes_of(seen: Seen, prefix: str) -> set[str]:
    return {
        action.agent
        for _, _, actions in seen.log
        for action in actions
        if isinstance(action, act.Grant) and action.session.startswith(prefix)
    }


def test_the_owner_of_a_node_has_it_within_the_grace_whoever_borrowed_it() -> None:
    seen = see(
        pools(project("lab", 4, h100=4), project("guests")),
        two_nodes(),
        [at(1, one) for one in crowd(8, "guests", 5 * HOUR_S, qos="batch")],
        [at(600, one) for one in crowd(4, "lab", 600, gpu_type="H100")],
        last=HOUR_S,
    )
    assert max(seen.wait(f"lab{n}") for n in range(4)) <= SOON_S
    assert nodes_of(seen, "lab") == {"fast"}


def test_who_is_guaranteed_any_gpu_leaves_the_owners_node_and_has_another_one() -> None:
    seen = see(
        pools(project("lab", 4, h100=4), project("course", 4), project("guests")),
        two_nodes(),
        [at(1, one) for one in crowd(4, "guests", 5 * HOUR_S, qos="batch", gpu_type="L4")],
        [at(5, one) for one in crowd(4, "course", 3 * HOUR_S, qos="batch")],
        [at(600, one) for one in crowd(4, "lab", 1800, gpu_type="H100")],
        last=HOUR_S,
        delays=hi.Delays(ask_again_ms=1000),
    )
    assert max(seen.wait(f"lab{n}") for n in range(4)) <= SOON_S
    assert nodes_of(seen, "course") == {"fast", "slow"}  # first there, where room was; then on what guests had
    running = [now for when, now in seen.running() if when > 800]
    assert all(sum(now.get(f"course{n}", 0) for n in range(4)) == 4 for now in running[:20])


def test_gpus_elsewhere_use_up_nothing_of_what_is_guaranteed_at_home() -> None:
    seen = see(
        pools(project("lab", 4, h100=4), project("course", 4)),
        two_nodes(),
        [at(1, one) for one in crowd(4, "lab", 5 * HOUR_S, qos="batch", gpu_type="L4", name="away")],
        [at(5, one) for one in crowd(4, "course", 5 * HOUR_S, qos="batch")],
        [at(600, one) for one in crowd(4, "lab", 1800, gpu_type="H100")],
        last=HOUR_S,
        delays=hi.Delays(ask_again_ms=1000),
    )
    assert max(seen.wait(f"lab{n}") for n in range(4)) <= SOON_S
    used_s = seen.gpu_seconds("course", 800, 2000)
    assert used_s >= 0.97 * 4 * 1200, "what the lab has elsewhere is borrowed now, and the course takes it back"


def test_no_more_is_taken_than_is_guaranteed_there() -> None:
    seen = see(
        pools(project("lab", 4, h100=2), project("course", 4)),
        two_nodes(),
        [at(1, one) for one in crowd(4, "course", 5 * HOUR_S, qos="batch", gpu_type="H100")],
        [at(2, one) for one in crowd(4, "guests", 5 * HOUR_S, qos="batch")],
        [at(600, one) for one in crowd(4, "lab", 1800, gpu_type="H100")],
        last=HOUR_S,
        delays=hi.Delays(ask_again_ms=1000),
    )
    waits = sorted(seen.wait(f"lab{n}") for n in range(4))
    assert waits[1] <= SOON_S
    assert waits[2] > 10 * MINUTE_S, "a course in its guarantee loses no more than the lab is guaranteed there"
    assert sum(bool(seen.asked_to_leave(f"course{n}")) for n in range(4)) == 2


def test_a_cell_goes_home_first_and_others_go_there_last() -> None:
    seen = see(
        pools(project("lab", 4, h100=4), project("guests")),
        two_nodes(),
        [at(1, one) for one in crowd(4, "guests", 600)],
        [at(2, one) for one in crowd(4, "lab", 600)],
        last=1200,
    )
    assert nodes_of(seen, "guests") == {"slow"}
    assert nodes_of(seen, "lab") == {"fast"}
    assert not any(seen.asked_to_leave(session) for session in seen.opened)


def test_a_department_is_guaranteed_a_node_for_all_that_are_in_it() -> None:
    seen = see(
        pools(
            project("science", 4, h100=4), project("lab", parent="science"), project("group", parent="science"),
            project("guests"),
        ),
        two_nodes(),
        [at(1, one) for one in crowd(8, "guests", 5 * HOUR_S, qos="batch")],
        [at(600, one) for one in [*crowd(2, "lab", 600, gpu_type="H100"), *crowd(2, "group", 600, gpu_type="H100")]],
        last=HOUR_S,
    )  # fmt: skip
    assert max(seen.wait(f"{name}{n}") for name in ("lab", "group") for n in range(2)) <= SOON_S


def test_nodes_may_be_named_and_a_node_that_is_gone_costs_its_owner_alone() -> None:
    pool = NodePool(name="h100", nodes=("fast",))
    seen = see(
        pools(project("lab", 4, h100=4), project("course", 4), project("guests"), pool=pool),
        two_nodes(),
        [at(1, one) for one in crowd(8, "guests", 5 * HOUR_S, qos="batch")],
        at(300, hi.Drains(AgentId("fast"), is_drained=True)),
        [at(600, one) for one in crowd(4, "course", 1800)],
        [at(601, one) for one in crowd(1, "lab", 600)],
        last=HOUR_S,
    )
    assert max(seen.wait(f"course{n}") for n in range(4)) <= SOON_S
    assert seen.wait("lab0") > 10 * MINUTE_S


def test_every_index_of_the_pools_is_right_after_each_step() -> None:
    happenings = [
        *two_nodes(),
        *(at(1 + n, one) for n, one in enumerate(crowd(6, "guests", 90, 400, think_s=20, qos="batch"))),
        *(at(60 + 7 * n, one) for n, one in enumerate(crowd(6, "lab", 60, 300, think_s=5))),
        at(200, hi.Drains(AgentId("fast"), is_drained=True)),
        at(400, hi.Drains(AgentId("fast"), is_drained=False)),
        at(500, hi.Changes(pools(project("lab", 2), project("guests", 2, h100=1)))),
        at(600, hi.GoesSilent(AgentId("fast"))),
        at(700, hi.Returns(AgentId("fast"))),
    ]
    settings = pools(project("lab", 4, h100=4), project("guests"))
    history = hi.History(settings=settings, happenings=tuple(happenings), until_ms=2_000_000)
    driver = Driver(history, Judge(history, 20))
    step = driver.scheduler.step

    def checked(event: ev.Event, now_ms: int, *, decides: bool = True) -> list[act.Action]:
        actions = step(event, now_ms, decides=decides)
        check(driver.scheduler.state)
        return actions

    driver.scheduler.step = checked  # type: ignore[method-assign]
    driver.play()
    assert driver.steps > 100


def test_a_pool_that_is_new_in_the_settings_counts_at_once() -> None:
    seen = see(
        SchedulerSettings(projects=(project("lab", 4), project("course", 4))),
        two_nodes(),
        [at(1, one) for one in crowd(4, "course", 5 * HOUR_S, qos="batch", gpu_type="H100")],
        [at(10, one) for one in crowd(4, "lab", 1800, gpu_type="H100")],
        at(600, hi.Changes(pools(project("lab", 4, h100=4), project("course", 4)))),
        last=HOUR_S,
    )
    assert all(600 < seen.granted(f"lab{n}") <= 600 + SOON_S for n in range(4))


@pytest.mark.parametrize("seed", range(12))
def test_in_any_history_what_is_guaranteed_in_a_pool_comes_within_the_grace(seed: int) -> None:
    """Cells that only the pool serves wait for a min_runtime and a grace at most while their project is owed some."""
    draw = random.Random(seed)
    names = ["a", "b", "c", "guests"]
    fast = draw.randint(2, 6)
    parts = sorted(draw.randint(0, fast) for _ in range(2))
    owed = {"a": parts[0], "b": parts[1] - parts[0], "c": 0, "guests": 0}
    settings = pools(*(project(name, owed[name] + draw.randint(0, 1), h100=owed[name]) for name in names))
    opened = []
    for number in range(60):
        name = draw.choice(names)
        runs = [draw.choice((20, 120, 900, 4000)) for _ in range(draw.randint(1, 4))]
        asks = {"gpu_type": draw.choice(("", "H100", "L4")), "qos": draw.choice(("interactive", "batch"))}
        opened.append(at(draw.uniform(1, 5400), notebook(f"{name}{number}", name, *runs, think_s=30, **asks)))
    seen = see(
        settings,
        at(0, hi.Joins(AgentId("fast"), hi.gpus(fast, H100))),
        at(0, hi.Joins(AgentId("slow"), hi.gpus(4, L4))),
        opened,
        last=2 * HOUR_S,
        delays=hi.Delays(ask_again_ms=500),
    )
    debts = {name: ((name,), gpus) for name, gpus in owed.items()}
    assert owed_too_long(seen, debts) <= 92  # 60 of min_runtime, 30 of grace, and two
