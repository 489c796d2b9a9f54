# settings and histories in one line each
"""A class that never borrows has what its project is guaranteed, wherever cells of the project are that may borrow."""

import pytest

from gpu_worker.scheduler.events import LeaseEnded
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S
from tests.scheduler.promises.seen import HOUR_S, Seen, at, nodes, see
from tests.scheduler.promises.stories import BATCH_S, LONG, POOL, ask, join, left, look, places, quotas, waits

OWNER = POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n"


def most_of(seen: Seen, prefix: str) -> int:
    return max(sum(n for session, n in now.items() if session.startswith(prefix)) for _, now in seen.running())


@pytest.mark.parametrize(("number", "gpus"), [(1, 1), (2, 1), (4, 1), (2, 2), (1, 4), (1, 3)])
@pytest.mark.parametrize("away", [2, 4])
def test_batch_of_the_project_on_another_type_borrows_from_then_on(number: int, gpus: int, away: int) -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n"), join(4, 4),
        ask(1, away, "lab", BATCH_S, gpu_type="L4", name="away", **LONG),
        ask(2, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(600, number, "lab", 1800, gpu_type="H100", gpus=gpus, qos="reserved"),
        last=HOUR_S / 2,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert left(seen, "guests") == number * gpus
    assert left(seen, "away") == 0


def test_no_more_than_is_guaranteed_in_such_a_class() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n"), join(4, 4),
        ask(1, 2, "lab", BATCH_S, gpu_type="L4", name="away", **LONG),
        ask(2, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 6, "lab", 5000, gpu_type="H100", qos="reserved", name="r"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert most_of(seen, "r") == 4
    assert waits(seen, "r")[3] <= SOON_S


def test_of_a_department_that_pays_for_a_lab_without_a_guarantee() -> None:
    seen = look(
        quotas('[projects.dep]\nguaranteed = 3\n[projects.lab]\nparent = "dep"\n'), join(4, 4),
        ask(1, 3, "lab", BATCH_S, gpu_type="L4", name="away", **LONG),
        ask(2, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 3, "lab", 1800, gpu_type="H100", qos="reserved"),
        last=HOUR_S / 2,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S


@pytest.mark.parametrize("typed", ["", "H100"])
@pytest.mark.parametrize(("number", "gpus"), [(4, 1), (2, 2), (1, 4), (2, 1)])
@pytest.mark.parametrize("away", ["interactive", "batch"])
def test_the_owner_has_its_node_in_such_a_class_whatever_it_uses_elsewhere(
    typed: str, number: int, gpus: int, away: str
) -> None:
    seen = look(
        quotas(OWNER), join(4, 6),
        ask(1, 4, "lab", *[1700] * 4, gpu_type="L4", name="away", qos=away),
        ask(2, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(600, number, "lab", 1800, gpu_type=typed, gpus=gpus, qos="reserved"),
        last=HOUR_S / 2,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    if away == "interactive":
        assert set(places(seen, "lab")) == {"fast"}, "elsewhere it would borrow"


def test_what_is_all_guaranteed_at_home_is_used_in_such_a_class_at_home_alone() -> None:
    """Else it would have more than its guarantee with others of its cells at home, and a covered one would wait."""
    seen = look(
        quotas(OWNER + "[projects.far]\nguaranteed = 4\n"), join(4, 4),
        ask(2, 3, "lab", 3 * HOUR_S, name="r-any", qos="reserved"),
        ask(600, 4, "lab", 1800, gpu_type="H100", name="types"),
        ask(900, 4, "far", 1800),
        last=HOUR_S,
    )  # fmt: skip
    assert set(places(seen, "r-any")) == {"fast"}
    assert waits(seen, "far")[-1] <= SOON_S


def test_who_asks_for_another_type_in_such_a_class_is_told_where_the_guarantee_is() -> None:
    seen = look(quotas(OWNER), join(4, 4), ask(2, 1, "lab", 300, gpu_type="L4", qos="reserved"), last=100)
    assert " ".join(seen.refused("lab0")) == (
        "1 GPU was asked for in QoS 'reserved', which never borrows, and all that project 'lab' is guaranteed is in "
        "node pool 'h100'. Choose GPUs of node pool 'h100' with --gpu-type, another QoS with --qos, or another project "
        "with --project."
    )


@pytest.mark.parametrize("beside", [1, 2])
def test_elsewhere_such_a_class_has_what_is_guaranteed_beside_the_node_pool(beside: int) -> None:
    seen = look(
        quotas(POOL + f"[projects.lab]\nguaranteed = {4 + beside}\nnode_pools = {{ h100 = 4 }}\n"), join(4, 4),
        ask(1, 3, "lab", 3 * HOUR_S, gpu_type="L4", name="r-away", qos="reserved"),
        ask(600, 4, "lab", 1800, gpu_type="H100", name="r-home", qos="reserved"),
        last=HOUR_S,
    )  # fmt: skip
    assert (most_of(seen, "r-a"), most_of(seen, "r-h")) == (beside, 4)


def test_what_runs_elsewhere_from_before_the_home_counts_there() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nguaranteed = 4\n"), join(4, 4),
        ask(2, 3, "lab", 3 * HOUR_S, gpu_type="L4", name="r-away", qos="reserved"),
        at(500, hi.Changes(quotas(OWNER))),
        ask(600, 3, "lab", 1800, gpu_type="H100", name="r-home", qos="reserved"),
        last=HOUR_S,
    )  # fmt: skip
    assert most_of(seen, "r-") == 4
    assert waits(seen, "r-home")[0] <= SOON_S


@pytest.mark.parametrize(("place", "leave"), [("L4", 2), ("H100", 0)])
def test_hot_sessions_of_such_a_class_leave_where_nothing_is_guaranteed_any_more(place: str, leave: int) -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nguaranteed = 4\n"), join(4, 4),
        ask(2, 2, "lab", 30, 600, think_s=1000, gpu_type=place, name="r-hot", qos="reserved"),
        at(500, hi.Changes(quotas(OWNER))),
        last=900,
    )  # fmt: skip
    assert sum(bool(seen.asked_to_leave(session)) for session in seen.opened) == leave


def test_a_lab_in_a_department_whose_guarantee_is_all_in_a_node_pool_goes_there_too() -> None:
    text = POOL + (
        "[projects.dep]\nguaranteed = 4\nnode_pools = { h100 = 4 }\n"
        '[projects.lab]\nparent = "dep"\nguaranteed = 2\n[projects.sib]\nparent = "dep"\n'
        "[projects.far]\nguaranteed = 4\n"
    )
    seen = look(
        quotas(text), join(4, 4),
        ask(1, 2, "lab", 3 * HOUR_S, name="r-lab", qos="reserved"),
        ask(600, 4, "sib", 1800, gpu_type="H100"),
        ask(900, 4, "far", 1800),
        last=HOUR_S,
    )  # fmt: skip
    assert set(places(seen, "r-lab")) == {"fast"}
    assert waits(seen, "far")[-1] <= SOON_S


@pytest.mark.parametrize("place", ["H100", "L4"])
def test_hot_sessions_of_such_a_class_leave_for_its_next_cells_at_home(place: str) -> None:
    seen = look(
        quotas(OWNER), join(8, 8),
        ask(1, 3, "lab", 30, 5000, think_s=1200, gpu_type=place, name="hot", qos="reserved"),
        ask(10, 4, "lab", *[1700] * 4, gpu_type="L4", name="away"),
        ask(600, 4, "lab", 5000, gpu_type="H100", name="home", qos="reserved"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "home")[-1] <= 5
    assert most_of(seen, "ho") == 4


def test_a_part_of_the_pool_for_such_a_class_in_a_department() -> None:
    text = POOL + (
        "[projects.dep]\nlimit = 8\nnode_pools = { h100 = 3 }\n"
        '[projects.lab]\nparent = "dep"\nnode_pools = { h100 = 2 }\n[projects.sib]\nparent = "dep"\n'
    )
    seen = look(
        quotas(text), join(4, 6),
        ask(1, 4, "lab", *[1700] * 4, gpu_type="L4", name="away"),
        ask(2, 4, "sib", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 2, "lab", 1800, qos="reserved"),
        last=HOUR_S / 2,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert (set(places(seen, "lab")), left(seen, "sib")) == ({"fast"}, 2)


@pytest.mark.parametrize("qos", ["interactive", "batch"])
def test_an_owner_in_a_full_limit_whose_other_cells_are_elsewhere(qos: str) -> None:
    text = POOL + (
        "[projects.dep]\nlimit = 8\n"
        '[projects.lab]\nparent = "dep"\nnode_pools = { h100 = 2 }\n[projects.sib]\nparent = "dep"\n'
    )
    seen = look(
        quotas(text), join(4, 6),
        ask(1, 4, "lab", *[1700] * 4, gpu_type="L4", name="away"),
        ask(2, 4, "sib", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 2, "lab", 1800, gpu_type="H100", qos=qos),
        last=HOUR_S / 2,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert left(seen, "sib") == 2
    assert seen.most_at_once("lab") + seen.most_at_once("sib") >= 8


def test_one_node_where_batch_of_its_own_is_all_there_is() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n[projects.other]\nguaranteed = 4\n"), nodes(1, 8),
        ask(1, 4, "lab", BATCH_S, name="own", **LONG),
        ask(2, 4, "other", BATCH_S, **LONG),
        ask(600, 4, "lab", 1800, qos="reserved"),
        last=HOUR_S / 2,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert (left(seen, "own"), left(seen, "other")) == (4, 0)


def test_a_cell_larger_than_what_own_users_are_guaranteed_does_not_borrow_when_one_of_them_does() -> None:
    """Three of the department's four GPUs, two of them for the lab; one of its own borrows then, and gives back."""
    seen = look(
        quotas(
            '[projects.department]\nguaranteed = 4\n[projects.lab]\nparent = "department"\nguaranteed = 2\n'
            "[projects.dean]\nguaranteed = 2\n"
        ),
        nodes(1, 6),
        ask(1, 1, "lab", 3000),
        ask(2, 1, "department", 120, 1500, name="large", qos="reserved", gpus=3),
        ask(60, 1, "department", 3000, name="borrows", qos="long"),
        ask(300, 2, "dean", 600),
        last=HOUR_S / 2,
    )  # fmt: skip
    assert waits(seen, "dean")[-1] <= SOON_S
    assert left(seen, "borrows") == 1
    assert not seen.violations


def test_a_hot_session_holds_its_part_of_the_guarantee_until_it_has_left() -> None:
    """Another GPU is free, and yet who comes waits until the hot session of their project is gone."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\n"), nodes(1, 4),
        ask(1, 1, "lab", 30, 600, think_s=600, name="r-hot", qos="reserved"),
        ask(100, 1, "lab", 1500, name="r-next", qos="reserved"),
        last=HOUR_S, evict_ms=5000,
    )  # fmt: skip
    left_at = next(when for when, event, _ in seen.log if isinstance(event, LeaseEnded))
    assert 100 < left_at == seen.granted("r-next0")


def test_a_hot_session_elsewhere_holds_its_part_of_what_is_guaranteed_there_until_it_has_left() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nguaranteed = 3\nnode_pools = { h100 = 2 }\n"), join(2, 2),
        ask(1, 1, "lab", 50, 1000, think_s=300, name="r-hot", qos="reserved", gpu_type="L4"),
        ask(2, 1, "lab", 1500, name="runs", qos="reserved", gpu_type="H100"),
        ask(100, 1, "lab", 1500, name="r-next", qos="reserved", gpu_type="L4"),
        last=900, evict_ms=5000,
    )  # fmt: skip
    left_at = next(when for when, event, _ in seen.log if isinstance(event, LeaseEnded))
    assert 100 < left_at == seen.granted("r-next0")


@pytest.mark.parametrize(("guaranteed", "number", "gpus"), [(1, 1, 1), (2, 1, 1), (2, 1, 2), (2, 2, 1), (4, 3, 1)])
def test_a_lower_class_that_does_not_either_gives_back_what_a_higher_one_needs(
    guaranteed: int, number: int, gpus: int
) -> None:
    """It cannot borrow from then on, so it leaves: the project never uses more than it is guaranteed."""
    calm = '[qos.calm]\npriority = 50\nwalltime = "1 h"\nmust_be_in_quota = true\n'
    seen = see(
        quotas(calm + f"[projects.lab]\nguaranteed = {guaranteed}\n[projects.guests]\n"), nodes(1, 6),
        ask(1, guaranteed, "lab", 3000, qos="calm", name="calm"),
        ask(600, number, "lab", 600, qos="reserved", gpus=gpus, name="high"),
        last=HOUR_S,
    )  # fmt: skip
    assert seen.most_at_once("lab") == guaranteed
    assert waits(seen, "high")[-1] <= SOON_S
    assert left(seen, "calm") == number * gpus
