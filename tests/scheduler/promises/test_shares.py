"""Who has waited for a share takes it back, by weight, from who has more of the surplus, and no more than that."""

import pytest

from tests.scheduler.promises.seen import HOUR_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import LONG_S, batch, left, look, on_one_node, quotas


def uses(seen: Seen, name: str) -> int:
    """Count the GPUs on which, at the end, cells of sessions run whose name begins so."""
    return sum(n for session, n in seen.running()[-1][1].items() if session.startswith(name))


def test_a_share_comes_after_the_wait_and_the_grace() -> None:
    seen = on_one_node(2, batch(1, 2, "a"), batch(500, 1, "b"))
    assert seen.wait("b0") == pytest.approx(150, abs=1)


@pytest.mark.parametrize("guaranteed", [0, 3, 4])
def test_a_user_has_their_part_also_where_the_project_is_covered_and_nobody_else_gives_back(guaranteed: int) -> None:
    """What others have is never taken back: so it is the one who has more of the same project who gives."""
    text = f'[qos.kept]\nwalltime = "12h"\npreemption = "never"\n[projects.p]\nguaranteed = {guaranteed}\n'
    far = at(1, notebook("far", "far", LONG_S, qos="kept"))
    seen = on_one_node(4, far, batch(10, 3, "p", "ann", "ann"), batch(500, 1, "p", "bob", "bob"), text=text)
    assert seen.wait("bob0") == pytest.approx(150, abs=2)


@pytest.mark.parametrize(
    ("gpus", "text", "share"),
    [
        (4, "", 2),
        (3, "", 1),
        (4, "[projects.b]\nweight = 3\n", 3),
        (4, "[projects.a]\nweight = 3\n", 1),
        (4, "[projects.b]\npriority = 1\n", 4),
        (4, "[projects.a]\npriority = 1\n", 0),
        (4, "[projects.a]\nguaranteed = 2\n", 1),
    ],
)
def test_each_project_has_its_share_by_weight(gpus: int, text: str, share: int) -> None:
    seen = on_one_node(gpus, batch(1, gpus, "a"), batch(500, gpus, "b"), text=text)
    assert (uses(seen, "b"), uses(seen, "a")) == (share, gpus - share)
    assert left(seen, "b") == 0, "what was taken for a share is not taken back for one"


@pytest.mark.parametrize(("gpus", "share"), [(4, 2), (3, 0)])
def test_a_cell_for_two_gpus_takes_no_more_than_its_share(gpus: int, share: int) -> None:
    seen = on_one_node(gpus, batch(1, gpus, "a"), batch(500, 2, "b", gpus=2))
    assert (uses(seen, "b"), uses(seen, "a")) == (share, gpus - share)


def test_a_class_of_less_priority_takes_no_share_of_a_higher_one() -> None:
    seen = on_one_node(2, batch(1, 2, "a", qos="interactive"), batch(500, 1, "b"), last=1500)
    assert left(seen, "a") == 0


@pytest.mark.parametrize(("gpus", "share"), [(4, 2), (3, 1)])
@pytest.mark.parametrize("text", ["", "[projects.p]\nguaranteed = 4\n", "[projects.p]\nlimit = {}\n"])
def test_each_user_has_a_fair_part_of_their_project(gpus: int, share: int, text: str) -> None:
    asks = batch(1, gpus, "p", "a", "ann"), batch(500, gpus, "p", "b", "bob")
    seen = on_one_node(gpus + ("limit" in text), *asks, text=text.format(gpus))
    assert (uses(seen, "b"), uses(seen, "a")) == (share, gpus - share)
    assert left(seen, "b") == 0
    assert seen.wait("b0") == pytest.approx(150, abs=2)


def test_who_waits_for_a_young_cell_of_a_lower_class_takes_no_other_ones_before() -> None:
    text = '[projects.p]\nguaranteed = 4\n[qos.fixed]\nwalltime = "1 d"\npreemption = "never"\n'
    seen = on_one_node(
        4,
        at(1, notebook("far", "far", LONG_S, qos="fixed")),
        batch(2, 2, "p", "typing", "ann", qos="interactive"),
        batch(495, 1, "p", "young", "ann"),
        batch(500, 1, "p", "b", "bob", qos="interactive"),
        text=text,
        last=610,
    )
    assert (left(seen, "typing"), left(seen, "young")) == (0, 1)
    assert seen.granted("b0") == 495 + 60 + 30


@pytest.mark.parametrize(("gpus", "share"), [(4, 2), (3, 0)])
def test_a_users_cell_for_two_gpus_takes_no_more_than_their_part(gpus: int, share: int) -> None:
    seen = on_one_node(gpus, batch(1, gpus, "p", "a", "ann"), batch(500, 2, "p", "b", "bob", gpus=2))
    assert (uses(seen, "b"), uses(seen, "a")) == (share, gpus - share)


def test_a_share_is_not_taken_from_who_lent_more() -> None:
    """For four hours `b` used what `a` is guaranteed, which then asks for more than that."""
    seen = look(
        quotas("[projects.a]\nguaranteed = 1\n"),
        nodes(1, 3),
        [at(1, notebook(f"past{n}", "b", 4 * HOUR_S, qos="batch", closes_ms=0)) for n in range(3)],
        batch(5 * HOUR_S, 3, "a"),
        batch(6 * HOUR_S, 1, "b"),
        last=6 * HOUR_S + 600,
    )
    assert left(seen, "a") == 0


def test_a_share_is_of_what_a_project_has_with_all_inside_it() -> None:
    text = "[projects.school]\n" + "".join(f'[projects.in{n}]\nparent = "school"\n' for n in range(3))
    seen = on_one_node(3, *(batch(1 + n, 1, f"in{n}") for n in range(3)), batch(500, 1, "far"), text=text)
    assert seen.wait("far0") == pytest.approx(150, abs=1)


def test_a_share_is_taken_once_credits_have_changed_though_nothing_happens() -> None:
    """For an hour `b` used what the others are guaranteed; then `a` uses what is guaranteed to `c`."""
    seen = look(
        quotas("[projects.a]\nguaranteed = 1\n[projects.c]\nguaranteed = 2\n"),
        nodes(1, 3),
        [at(1, notebook(f"past{n}", "b", HOUR_S, qos="batch", closes_ms=0)) for n in range(3)],
        batch(2 * HOUR_S, 3, "a"),
        batch(2 * HOUR_S + 60, 1, "b"),
        last=6 * HOUR_S,
    )
    assert 3.5 * HOUR_S < seen.granted("b0") < 4.5 * HOUR_S


def test_what_was_taken_back_hides_no_request_of_its_user_that_has_waited_for_its_share() -> None:
    """Both batch cells that are taken back at 700 stand where they stood, and have not waited since."""
    seen = on_one_node(
        4,
        batch(1, 2, "club", name="ann", user="ann"),
        batch(150, 1, "club", name="dan"),
        batch(200, 1, "club", name="first", user="bob"),
        batch(620, 1, "club", name="second", user="bob"),
        batch(700, 2, "club", name="kim", qos="interactive"),
        last=1000,
    )
    assert seen.granted("second0") == 770
