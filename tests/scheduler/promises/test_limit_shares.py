"""Each user has a fair part of a project (13), also where its limit is full, or what others lend it."""

import pytest

from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.promises.crowds import SOON_S, keeps_all
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, look, quotas


@pytest.mark.parametrize(
    "text",
    [
        "[projects.lab]\nlimit = 3\n",
        "[projects.lab]\nguaranteed = 3\nborrow = false\n",
        '[projects.department]\nlimit = 3\n[projects.lab]\nparent = "department"\n',
        "[projects.keeper]\nguaranteed = 2\nlending_limit = 0\n",
    ],
)
def test_who_uses_less_of_a_full_project_takes_one_cell_back_after_two_minutes(text: str) -> None:
    seen = look(
        quotas(text),
        nodes(1, 5),
        [at(1 + n, notebook(f"one{n}", "lab", 3000, user="one")) for n in range(3)],
        at(300, notebook("other", "lab", 600)),
        last=HOUR_S,
    )
    assert 2 * MINUTE_S <= seen.wait("other") <= 2 * MINUTE_S + SOON_S
    assert sorted(len(seen.asked_to_leave(f"one{n}")) for n in range(3)) == [0, 0, 1]
    keeps_all(seen)


def test_nobody_takes_of_a_full_limit_what_would_leave_another_user_with_less() -> None:
    seen = look(
        quotas("[projects.lab]\nlimit = 2\n"),
        nodes(1, 5),
        [at(1 + n, notebook(f"user{n}", "lab", 1500)) for n in range(2)],
        at(300, notebook("other", "lab", 600)),
        last=HOUR_S,
    )
    assert seen.wait("other") >= 1000
    keeps_all(seen)


@pytest.mark.parametrize("large", [0, 1])
@pytest.mark.parametrize("walltime_s", [200, 300, 2 * HOUR_S])
def test_who_has_waited_takes_their_part_though_somebody_stands_before_them_who_has_not(
    walltime_s: int, large: int
) -> None:
    """Who stands before them waits for a cell that is over sooner than those that are taken, and starts no later."""
    seen = look(
        SchedulerSettings(),
        nodes(1, 6),
        [at(1 + n, notebook(f"one{n}", "hub", BATCH_S, user="one", qos="batch")) for n in range(4)],
        at(100, notebook("soon", "hub", 1500, qos="batch", walltime_ms=1800_000)),
        at(101, notebook("runs", "hub", BATCH_S, user="two", qos="batch")),
        ask(250, large, "hub", 60, name="large", gpus=6, **LONG),
        at(300, notebook("waits", "hub", 200, user="two", qos="batch", walltime_ms=walltime_s * 1000)),
        at(300 + MINUTE_S, notebook("before", "hub", 60, qos="batch", walltime_ms=200_000)),
        last=2 * HOUR_S,
    )
    assert 2 * MINUTE_S <= seen.wait("waits") <= 2 * MINUTE_S + SOON_S
    keeps_all(seen)
