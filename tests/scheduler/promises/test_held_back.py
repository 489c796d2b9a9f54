"""Who may not run now keeps nobody from what is free, and takes nothing from anybody."""

import pytest

from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas

LONG = {"qos": "batch", "closes_ms": 0}
DEPARTMENT = '[projects.dep]\n{outer}\n[projects.mine]\nparent = "dep"\n{own}\n[projects.far]\n[projects.guest]\n'


@pytest.mark.parametrize(
    ("outer", "own", "qos", "other"),
    [
        ("", "user_limit = 2", "batch", "mine"),
        ("", "user_limit = 2", "batch", "guest"),
        ("", "limit = 2", "batch", "guest"),
        ("limit = 2", "", "batch", "guest"),
        ("", "borrow = false\nguaranteed = 1", "batch", "guest"),
        ("", 'budget = "1 GPU-hours per day"', "batch", "guest"),
        ('budget = "1 GPU-hours per day"', "", "batch", "guest"),
        ("", "", "few", "mine"),
        ("", "", "few", "guest"),
        ("guaranteed = 1", "", "reserved", "guest"),
    ],
)
def test_who_may_not_run_is_not_waited_for(outer: str, own: str, qos: str, other: str) -> None:
    """A request for two GPUs waits for what is its own; the one that is free is somebody else's at once."""
    text = DEPARTMENT.format(outer=outer, own=own) + '[qos.few]\nwalltime = "1 d"\nrunning_per_user = 1\n'
    seen = look(
        quotas(text),
        nodes(1, 4),
        at(1, notebook("far", "far", 20 * HOUR_S, gpus=2, **LONG)),
        at(2, notebook("runs", "mine", HOUR_S, user="ann", **LONG | {"qos": qos, "walltime_ms": HOUR_S * 1000})),
        at(100, notebook("large", "mine", HOUR_S, gpus=2, user="ann", **LONG | {"qos": qos})),
        at(200, notebook("other", other, HOUR_S, user="bob", **LONG)),
        last=1200,
    )
    assert seen.wait("other") <= 1
    assert seen.granted("large") > 1200
    assert seen.asked_to_leave("far") == seen.asked_to_leave("runs") == []
