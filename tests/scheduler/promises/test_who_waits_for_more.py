"""Who has GPUs already and waits for more keeps nothing from others by that, and loses nothing."""

import msgspec

from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.promises.seen import HOUR_S, Seen, nodes
from tests.scheduler.promises.stories import LONG, ask, join, left, look, quotas, waits


def waits_beside_what_is_hot(settings: SchedulerSettings) -> Seen:
    """Play: one GPU runs a batch cell of Ann's, who asks for another one, and the other GPU is hot, of others."""
    return look(
        settings,
        nodes(1, 2),
        ask(1, 1, "lab", 2 * HOUR_S, name="runs", user="ann", **LONG),
        ask(1, 1, "far", 50, 2 * HOUR_S, think_s=300, **LONG),
        ask(100, 1, "lab", 100, name="more", user="ann", **LONG),
        ask(110, 1, "lab", 100, name="bob", **LONG),
        last=HOUR_S,
    )


def test_who_has_all_that_a_user_may_have_makes_nobody_leave() -> None:
    seen = waits_beside_what_is_hot(quotas("[projects.lab]\nuser_limit = 1\n"))
    assert seen.asked_to_leave("far0") == [110]
    assert waits(seen, "bob") == [0]


def test_who_has_all_that_the_class_of_service_lets_a_user_run_makes_nobody_leave() -> None:
    settings = quotas("")
    classes = tuple(msgspec.structs.replace(one, running_per_user=1) for one in settings.qos)
    seen = waits_beside_what_is_hot(msgspec.structs.replace(settings, qos=classes))
    assert seen.asked_to_leave("far0") == [110]
    assert waits(seen, "bob") == [0]


def test_who_has_all_that_a_user_may_have_lets_no_gpu_idle_for_it() -> None:
    seen = look(
        quotas("[projects.lab]\nuser_limit = 1\n"),
        nodes(1, 2),
        ask(1, 1, "lab", 2 * HOUR_S, name="runs", user="ann", **LONG),
        ask(1, 1, "far", 50, 100, think_s=300, **LONG),
        ask(100, 1, "lab", 100, name="more", user="ann"),
        ask(110, 1, "lab", 100, name="bob", **LONG),
        last=HOUR_S,
    )
    assert seen.asked_to_leave("far0")[0] == 110
    assert waits(seen, "bob") == [0]


def test_what_a_user_waits_for_is_not_held_against_what_they_have() -> None:
    """Ann has one GPU and is about to have another one, which she gives up: Bob may not take the one that she has."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\n"),
        join(1, 1),
        ask(1, 1, "lab", 2 * HOUR_S, name="runs", user="ann", gpu_type="H100", **LONG),
        ask(2, 1, "far", 2 * HOUR_S, gpu_type="L4", **LONG),
        ask(100, 1, "lab", 1000, name="bob", gpu_type="H100", **LONG),
        ask(300, 1, "lab", 1000, name="more", user="ann", gpu_type="L4", patience_ms=10_000),
        last=900,
    )
    assert (left(seen, "far"), left(seen, "runs")) == (1, 0)


def test_who_was_granted_another_gpu_meanwhile_is_late_no_later() -> None:
    """After half an hour Ann stands before those of higher priority, whatever she has been granted since she asked."""
    seen = look(
        quotas("[projects.first]\npriority = 5\n"),
        join(1, 1),
        ask(1, 1, "far", 900, gpu_type="H100", closes_ms=0),
        ask(10, 1, "lab", 100, name="waits", user="ann", gpu_type="H100"),
        ask(20, 1, "lab", 4 * HOUR_S, name="other", user="ann", gpu_type="L4", **LONG),
        ask(100, 5, "first", 900, gpu_type="H100", closes_ms=0),
        last=2 * HOUR_S,
    )
    assert seen.wait("waits0") <= HOUR_S / 2 + 900
