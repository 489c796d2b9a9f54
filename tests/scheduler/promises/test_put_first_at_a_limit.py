"""At whose cost a request is put first in a project with a limit: its own users', for as long as that helps it."""

from bulletin.ids import SessionId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import quotas
from tests.scheduler.promises.seen import HOUR_S, at
from tests.scheduler.promises.stories import LONG_S, ask, join, look, waits

PATIENCE_S = 1800
CELLS = [600] * 60


def test_who_is_late_in_a_project_inside_loses_nothing_while_somebody_put_first_waits_for_a_node() -> None:
    """Two of the department run in turn beside the only H100, which is busy: a lab's large cell waited for ever."""
    seen = look(
        quotas('[projects.dep]\nlimit = 4\n[projects.lab]\nparent = "dep"\n[projects.other]\n'
               '[qos.interactive]\nwalltime = "11 h"\n'), join(1, 8),
        ask(1, 1, "other", LONG_S, name="owner", gpu_type="H100"),
        ask(2, 1, "dep", *CELLS, name="first", think_s=1, gpu_type="L4"),
        ask(3, 1, "dep", 300, *CELLS, name="second", think_s=1, gpu_type="L4"),
        ask(30, 1, "lab", 300, gpus=4, name="large", gpu_type="L4"),
        ask(60, 1, "dep", 300, name="ann", gpu_type="H100"), at(70, hi.ByHand(SessionId("ann0"), "put-first")),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "large")[0] <= PATIENCE_S + 605


def test_who_is_put_first_and_waits_for_a_node_keeps_nothing_of_the_limit_from_others_of_the_project() -> None:
    """Its node is busy for eleven hours. Two who type waited as long, beside eight GPUs that nobody used."""
    seen = look(
        quotas('[projects.lab]\nlimit = 4\n[projects.other]\n[qos.interactive]\nwalltime = "11 h"\n'), join(4, 8),
        ask(1, 1, "other", LONG_S, gpus=4, name="owner", gpu_type="H100"),
        ask(30, 1, "lab", 300, gpus=4, name="large", gpu_type="H100"),
        at(70, hi.ByHand(SessionId("large0"), "put-first")),
        ask(100, 1, "lab", 300, name="one", gpu_type="L4", walltime_ms=600_000),
        ask(130, 1, "lab", 300, name="two", gpu_type="L4", walltime_ms=600_000),
        last=1500,
    )  # fmt: skip
    assert waits(seen, "one") == waits(seen, "two") == [0]


def test_what_a_limit_keeps_for_who_is_put_first_is_used_by_cells_that_are_over_before_it_lets_them_through() -> None:
    """Three of the lab's own cells run for five hours: one of ten minutes waited for them, too."""
    seen = look(
        quotas('[projects.lab]\nlimit = 4\n[qos.interactive]\nwalltime = "11 h"\n'), join(0, 8),
        ask(1, 3, "lab", 5 * HOUR_S, name="long"), ask(30, 1, "lab", 300, gpus=4, name="large"),
        at(70, hi.ByHand(SessionId("large0"), "put-first")),
        ask(1200, 1, "lab", 300, name="types", walltime_ms=600_000),
        ask(1600, 1, "lab", 300, name="night", walltime_ms=11 * HOUR_S * 1000),
        last=6 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "types") == [0]
    assert waits(seen, "large")[0] <= 5 * HOUR_S
