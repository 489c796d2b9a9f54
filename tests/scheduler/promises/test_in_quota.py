"""Who is next of those who are in quota, where the one GPU that comes is not enough for all of them."""

from tests.scheduler.promises.seen import HOUR_S, nodes
from tests.scheduler.promises.stories import LONG, ask, look, quotas

CLASSES = (
    '[qos.fixed]\nwalltime = "1 h"\npreemption = "never"\n[qos.slow]\nwalltime = "5 h"\nmin_runtime = "10 min"\n'
    '[qos.quick]\nwalltime = "1 h"\nmin_runtime = "0 s"\ngrace = "0 s"\n'
)


def test_who_is_in_quota_in_a_project_comes_first_wherever_that_one_is_inside() -> None:
    """The department is above its guarantee already, and its lab is not: nothing lower comes before that."""
    inside = '[projects.dep]\nguaranteed = 1\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'
    seen = look(
        quotas(CLASSES + inside + '[projects.two]\nparent = "dep"\n[projects.c]\nguaranteed = 1\n'),
        nodes(1, 2),
        ask(1, 1, "far", 199, name="holder", qos="fixed", closes_ms=0),
        ask(2, 1, "two", HOUR_S, qos="slow"),
        ask(100, 1, "c", HOUR_S, **LONG),
        ask(150, 1, "lab", HOUR_S),
        last=2000,
    )
    assert seen.granted("lab0") == 200


def test_who_gave_back_stands_behind_nobody_for_what_is_guaranteed() -> None:
    seen = look(
        quotas(CLASSES + "".join(f"[projects.{name}]\nguaranteed = 1\n" for name in "acd")),
        nodes(1, 4),
        ask(1, 1, "far", 199, name="holder", qos="fixed", closes_ms=0),
        ask(2, 1, "far", HOUR_S, name="other", qos="fixed"),
        ask(3, 1, "a", 195, name="first", qos="quick", closes_ms=0),
        ask(4, 1, "a", HOUR_S, name="borrowed", qos="quick", patience_ms=1),
        ask(195, 1, "d", HOUR_S),
        ask(198.2, 1, "far", HOUR_S, name="meanwhile", qos="fixed"),
        ask(199, 1, "a", HOUR_S, name="again"),
        ask(199.2, 1, "c", HOUR_S, **LONG),
        last=300,
    )
    assert seen.asked_to_leave("borrowed0") == [195]
    assert seen.granted("again0") == 200
