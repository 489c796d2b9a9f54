"""Each user has a fair part of a project (13), also where its limit is full, or what others lend it."""

import pytest

from tests.scheduler.promises.crowds import SOON_S, keeps_all
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas


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
