"""GPUs of several types on one node: who asks for a type has what is freed of it, and others have the rest."""

import pytest

from bulletin.ids import AgentId, SessionId
from gpu_worker.scheduler import actions as act
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, keeps_all, promised
from tests.scheduler.promises.seen import HOUR_S, Seen, at, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, look, mixed, quotas, waits

#: Two projects that are guaranteed a GPU each, of any type.
OWNERS = promised(course=1, lab=1)


def types_of(seen: Seen, session: str) -> list[str]:
    """List the GPUs that a session was granted, as the nodes call them."""
    return [
        slot
        for _, _, actions in seen.log
        for one in actions
        if isinstance(one, act.Grant) and one.session == session
        for slot in one.slots
    ]


def borrowers(fast_s: float = BATCH_S, slow_s: float = BATCH_S) -> list[hi.At]:
    """Guests on an H100 and, for a shorter time, on an L4: so the latter is taken back first."""
    return [
        *ask(1, 1, "guests", fast_s, name="fast", gpu_type="H100", closes_ms=0, **LONG),
        *ask(100, 1, "guests", slow_s, name="slow", gpu_type="L4", closes_ms=0, **LONG),
    ]


def test_who_asks_for_any_type_leaves_the_gpu_that_is_freed_for_who_asks_for_its_type() -> None:
    """An L4 is freed for the course, then the H100 for the lab, whose cell ends before its grace is over."""
    seen = look(
        OWNERS,
        mixed(),
        borrowers(fast_s=708),
        ask(700, 1, "course", 4 * HOUR_S),
        ask(705, 1, "lab", 900, gpu_type="H100"),
        last=HOUR_S,
    )
    assert waits(seen, "lab") <= [SOON_S]
    assert waits(seen, "course") <= [SOON_S]
    keeps_all(seen)


def test_who_asks_for_a_type_does_not_wait_for_a_gpu_of_another_type_to_be_freed() -> None:
    seen = look(
        OWNERS,
        mixed(),
        borrowers(),
        ask(700, 1, "course", 4 * HOUR_S),
        ask(705, 1, "lab", 900, gpu_type="H100"),
        last=HOUR_S,
    )
    assert waits(seen, "lab") <= [SOON_S]
    assert waits(seen, "course") <= [SOON_S]
    keeps_all(seen)


def test_nothing_idles_beside_a_gpu_of_another_type_that_is_freed_for_somebody() -> None:
    seen = look(
        OWNERS,
        mixed(),
        borrowers(slow_s=605),
        ask(700, 1, "lab", 900, gpu_type="H100"),
        ask(707, 1, "others", 900),
        last=HOUR_S,
    )
    assert waits(seen, "lab") <= [SOON_S]
    assert waits(seen, "others") == [0]
    keeps_all(seen)


def test_a_gpu_of_another_type_that_is_freed_makes_up_for_none_that_is_kept() -> None:
    """One H100 is free and one is freed for the lab, which needs both; that an L4 is freed as well is no help to it."""
    seen = look(
        promised(lab=2),
        mixed(2, 1),
        borrowers(),
        at(700, hi.ByHand(SessionId("slow0"), "requeue")),
        ask(701, 1, "lab", 900, gpu_type="H100", gpus=2),
        ask(702, 1, "others", BATCH_S),
        last=HOUR_S,
    )
    assert waits(seen, "lab") <= [SOON_S]
    assert waits(seen, "others") <= [SOON_S]
    keeps_all(seen)


@pytest.mark.parametrize("wanted", ["H100", "L4"])
def test_who_asks_for_any_type_has_the_one_that_nobody_is_owed(wanted: str) -> None:
    """Both wait for the node; who asks for any type is next, and both GPUs are free at once."""
    seen = look(
        OWNERS,
        mixed(),
        at(0.5, hi.Drains(AgentId("both"), is_drained=True)),
        ask(1, 1, "course", 900),
        ask(2, 1, "lab", 900, gpu_type=wanted),
        at(60, hi.Drains(AgentId("both"), is_drained=False)),
        last=HOUR_S,
    )
    assert waits(seen, "course") == [59]
    assert waits(seen, "lab") == [58]
    keeps_all(seen)


def test_who_asks_for_any_type_leaves_what_is_free_of_one_to_who_else_waits_until_a_session_has_left() -> None:
    """A hot L4 leaves for the lab; meanwhile another L4 and the H100 are free, and the course inside it is next."""
    seen = look(
        quotas('[projects.lab]\n[projects.course]\nparent = "lab"\nguaranteed = 2\n'),
        mixed(1, 2),
        ask(1, 1, "guests", 600, name="hot", gpu_type="L4"),
        ask(2, 1, "guests", 700, name="ends", gpus=2, closes_ms=0),
        ask(703, 1, "lab", 900, gpu_type="L4"),
        ask(703.1, 1, "course", 900),
        last=800,
        evict_ms=5000,
    )
    assert seen.asked_to_leave("hot0") == [703]
    assert types_of(seen, "lab0") == ["slow1"]
    assert types_of(seen, "course0") == ["fast0"]
    assert seen.granted("lab0") == seen.granted("course0")


def test_it_has_the_first_one_where_there_is_no_other() -> None:
    """The only L4 has a cell that is never taken back: the course, which is next, leaves the H100 to nobody."""
    stays = '[qos.stays]\nwalltime = "1 d"\npreemption = "never"\n'
    seen = look(
        quotas(f"[projects.course]\nguaranteed = 1\n[projects.lab]\nguaranteed = 1\n{stays}"),
        mixed(),
        ask(1, 1, "guests", HOUR_S, name="firm", gpu_type="L4", qos="stays"),
        ask(2, 1, "guests", BATCH_S, **LONG),
        ask(700, 1, "course", 60),
        ask(705, 1, "lab", 900, gpu_type="H100"),
        last=HOUR_S,
    )
    assert waits(seen, "course") <= [SOON_S]
    keeps_all(seen)


def test_any_type_is_the_smallest_of_those_that_are_free() -> None:
    """The L4 of the first node is busy, so what is free there is larger than on the second one."""
    seen = look(
        OWNERS,
        mixed(),
        at(0.1, hi.Joins(AgentId("other"), hi.gpus(1, "NVIDIA A100 40GB", 40 * hi.GB))),
        ask(1, 1, "guests", BATCH_S, gpu_type="L4"),
        ask(2, 1, "guests", BATCH_S, name="any"),
        last=HOUR_S,
    )
    assert types_of(seen, "any0") == ["gpu0"]
    keeps_all(seen)


def test_who_waits_for_one_type_keeps_no_hot_gpu_of_another_from_others() -> None:
    """The only L4 is in use for hours; sessions that are hot on the H100 leave for all who ask for any type."""
    seen = look(
        OWNERS,
        mixed(2, 1),
        ask(1, 1, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(2, 2, "guests", 20, name="hot", gpu_type="H100"),
        ask(100, 1, "others", 900, gpu_type="L4"),
        ask(110, 2, "others", 900, name="any", **LONG),
        last=HOUR_S,
        evict_ms=5000,
    )
    assert seen.asked_to_leave("hot0") == seen.asked_to_leave("hot1") == [110]
    assert max(waits(seen, "any")) <= 5
    keeps_all(seen)


def test_a_larger_request_waits_for_the_type_that_nobody_before_it_waits_for() -> None:
    """One waits for the L4, then one for all three; a short cell is over on an H100 before either of them starts."""
    seen = look(
        OWNERS,
        mixed(2, 1),
        ask(1, 1, "guests", 600, gpu_type="L4", walltime_ms=600_000),
        ask(10, 1, "others", 900, name="waits", gpu_type="L4"),
        ask(20, 1, "others", 900, name="large", gpus=3),
        at(30, notebook("short", "others", 100, gpu_type="H100", walltime_ms=120_000)),
        last=HOUR_S,
    )
    assert seen.wait("short") == 0
    keeps_all(seen)


def test_nobody_leaves_a_gpu_to_who_borrows_for_a_grace() -> None:
    """As above, but nothing is guaranteed to whoever waits for the H100 when it is free."""
    seen = look(
        promised(course=1),
        mixed(),
        borrowers(fast_s=708),
        ask(700, 1, "course", 4 * HOUR_S),
        ask(705, 1, "lab", 900, gpu_type="H100"),
        last=HOUR_S,
    )
    assert waits(seen, "course") == [9]
    keeps_all(seen)


def test_what_is_hot_of_a_type_leaves_for_nobody_who_could_be_too_late_for_who_waits_for_it() -> None:
    """One waits for both H100, of which one is hot, until the other one is over; the hot L4 leaves for others."""
    seen = look(
        OWNERS,
        mixed(2, 1),
        ask(1, 1, "guests", 600, gpu_type="H100", walltime_ms=600_000),
        ask(2, 1, "guests", 20, name="hot", gpu_type="H100", walltime_ms=60_000),
        ask(3, 1, "guests", 20, name="least", gpu_type="L4"),
        ask(50, 1, "others", 60, name="waits", gpu_type="H100", gpus=2),
        ask(60, 1, "others", BATCH_S, name="any"),
        last=HOUR_S,
    )
    assert types_of(seen, "any0") == ["slow0"]
    assert seen.granted("waits0") <= 602
    assert seen.asked_to_leave("hot0")[0] > 500, "a cell that it began before would be over in time"
    keeps_all(seen)


def test_who_waits_for_any_type_keeps_from_others_nothing_that_is_of_who_is_before_them() -> None:
    """One waits for both L4, then one for any GPU: a short cell has the L4 that is free, as long as it is."""
    seen = look(
        OWNERS,
        mixed(1, 2),
        ask(1, 1, "guests", HOUR_S, gpu_type="H100", **LONG),
        ask(2, 1, "guests", 600, name="slow", gpu_type="L4", walltime_ms=600_000),
        ask(10, 1, "others", 900, name="waits", gpu_type="L4", gpus=2),
        ask(20, 1, "others", 900, name="any", walltime_ms=1_800_000),
        ask(30, 1, "others", 100, name="short", walltime_ms=120_000),
        last=HOUR_S,
    )
    assert waits(seen, "short") == [0]
    assert seen.granted("waits0") <= 604
    keeps_all(seen)


def test_what_is_hot_of_a_type_is_for_who_is_over_before_it_is_needed_whoever_else_waits_there() -> None:
    """One waits for both H100, then one for any GPU and a day: a short cell can use the hot one, they cannot."""
    shares = "".join(f'[qos.{name}]\nshare_after = "366 d"\n' for name in ("interactive", "batch"))
    seen = look(
        quotas(shares),
        mixed(2, 2),
        ask(1, 1, "guests", HOUR_S, name="fast", gpu_type="H100", **LONG),
        ask(2, 1, "guests", BATCH_S, name="slow", gpu_type="L4", **LONG),
        ask(3, 1, "guests", 600, name="soon", gpu_type="L4", walltime_ms=600_000),
        ask(4, 1, "guests", 96, name="hot", gpu_type="H100", walltime_ms=120_000),
        ask(20, 1, "others", 900, name="waits", gpu_type="H100", gpus=2),
        ask(30, 1, "others", BATCH_S, name="day", **LONG),
        ask(540, 1, "others", 100, name="short", walltime_ms=120_000, **LONG),
        last=HOUR_S,
    )
    assert waits(seen, "short") == [0]
    keeps_all(seen)


def test_who_waits_for_one_type_keeps_no_cell_of_another_from_a_higher_class_of_its_project() -> None:
    """The next in line asks for the H100, which is somebody's for a while; the batch cell is on the L4."""
    seen = look(
        quotas(""),
        mixed(),
        ask(1, 1, "lab", 1500, name="fast", gpu_type="H100", closes_ms=0),
        ask(2, 1, "lab", BATCH_S, gpu_type="L4", walltime_ms=1_500_000, **LONG),
        ask(600, 1, "lab", 900, name="waits", gpu_type="H100"),
        ask(601, 1, "lab", 900, name="any"),
        last=HOUR_S,
    )
    assert waits(seen, "any") == [30]
    keeps_all(seen)


def test_who_waits_for_one_whom_a_limit_is_kept_for_keeps_no_type_from_others() -> None:
    """One of the lab's wants the whole node and has lost patience: so its limit is not for who asks for the L4."""
    seen = look(
        quotas(
            "[projects.own]\nguaranteed = 1\n[projects.lab]\nguaranteed = 2\nlimit = 3\n"
            '[qos.batch]\npatience = "10 min"\n'
        ),
        mixed(2),
        ask(1, 1, "own", HOUR_S, gpu_type="H100"),
        ask(10, 1, "lab", 900, name="late", gpus=3, **LONG),
        ask(700, 1, "lab", 300, name="typed", gpu_type="L4", walltime_ms=300_000),
        ask(710, 1, "others", 250, name="any", walltime_ms=300_000),
        last=HOUR_S,
    )
    assert waits(seen, "any") == [0]
    assert seen.granted("typed0") > seen.granted("late0")
    keeps_all(seen)
