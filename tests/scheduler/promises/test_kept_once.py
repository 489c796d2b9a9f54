"""What a limit keeps for who is late is kept once, also while room is made for them."""

from tests.scheduler.promises.seen import HOUR_S, nodes
from tests.scheduler.promises.stories import ask, look, quotas

SLOW = '[qos.slow]\nwalltime = "1 h"\npriority = 50\npatience = "5 min"\nshare_after = "1 d"\n'


def test_two_hot_sessions_leave_at_once_for_one_who_is_late_and_for_the_next_one_of_the_limit() -> None:
    seen = look(
        quotas(SLOW + "[projects.p]\nlimit = 2\n"),
        nodes(1, 2),
        ask(1, 2, "far", 1000, 100, think_s=3000, qos="slow"),
        ask(100, 1, "p", 600, name="late", qos="slow"),
        ask(800, 1, "p", 600, name="next", qos="slow"),
        last=HOUR_S,
        evict_ms=5000,
    )
    assert seen.asked_to_leave("far0")[0] == seen.asked_to_leave("far1")[0] == 1001
