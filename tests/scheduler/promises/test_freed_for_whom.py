"""Whoever waits for any GPU, and those who ask for a type: each has what is freed for them, and in time."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, keeps_all, promised
from tests.scheduler.promises.seen import HOUR_S, at, nodes
from tests.scheduler.promises.stories import BATCH_S, L4, LONG, ask, left, look, mixed, quotas, waits

OLD = {"closes_ms": 0, **LONG}


def test_who_asks_for_a_type_has_it_although_more_is_freed_for_somebody_else() -> None:
    """The H100 is freed for the course and an L4 for the lab, which comes free soon; then a third GPU for the club."""
    seen = look(
        promised(course=1, lab=1),
        mixed(1, 3),
        ask(1, 1, "guests", BATCH_S, name="rest", gpu_type="L4", **OLD),
        ask(2, 1, "club", BATCH_S, name="batch", gpu_type="L4", **OLD),
        ask(50, 1, "guests", 660, name="slow", gpu_type="L4", **OLD),
        ask(100, 1, "guests", BATCH_S, name="fast", gpu_type="H100", **OLD),
        ask(700, 1, "course", 900),
        ask(701, 1, "lab", 900, gpu_type="L4"),
        ask(702, 1, "club", 900),
        last=HOUR_S,
    )
    assert waits(seen, "lab") == [9]
    assert waits(seen, "course") <= [SOON_S]
    keeps_all(seen)


def test_who_asks_for_any_type_does_not_wait_longer_since_more_is_freed_for_another_request() -> None:
    """A GPU is freed for the club, and the course comes before it: so it has that, and the next one is its second's."""
    seen = look(
        promised(course=2),
        mixed(1, 2),
        ask(1, 1, "guests", BATCH_S, name="fast", gpu_type="H100", **OLD),
        ask(2, 1, "club", BATCH_S, name="batch", gpu_type="L4", **OLD),
        ask(3, 1, "guests", BATCH_S, name="slow", gpu_type="L4", **OLD),
        ask(690, 1, "club", 900, gpu_type="L4"),
        ask(691, 1, "course", 900, name="any"),
        ask(700, 1, "course", 900, name="typed", gpu_type="L4"),
        last=HOUR_S,
    )
    assert waits(seen, "any") <= [SOON_S]
    assert waits(seen, "typed") <= [SOON_S]
    keeps_all(seen)


def test_who_asks_for_any_type_leaves_none_to_whom_another_one_is_freed_elsewhere() -> None:
    """The L4 goes for the club, and the course comes before it; then one for the lab elsewhere, and the H100."""
    seen = look(
        promised(course=1, lab=1),
        mixed(),
        at(0, hi.Joins(AgentId("other"), hi.gpus(1, L4))),
        ask(1, 1, "dean", BATCH_S, name="fast", gpu_type="H100", **OLD),
        at(2, hi.Drains(AgentId("other"), is_drained=True)),
        ask(3, 1, "club", BATCH_S, name="slow", gpu_type="L4", **OLD),
        at(4, hi.Drains(AgentId("other"), is_drained=False)),
        ask(5, 1, "guests", BATCH_S, **OLD),
        ask(690, 1, "club", 900),
        ask(691, 1, "course", 900),
        ask(700, 1, "lab", 900, gpu_type="L4"),
        ask(705, 1, "dean", 900),
        last=HOUR_S,
    )
    assert waits(seen, "course") <= [SOON_S]
    assert waits(seen, "lab") <= [SOON_S]
    keeps_all(seen)


def test_a_gpu_of_a_type_idles_for_nobody_before_whom_another_one_has_what_is_left() -> None:
    """The course waits for its own H100, for which somebody asks as well before the one who asks for an L4."""
    text = "[projects.dep]\n" + "".join(
        f'[projects.{name}]\nparent = "dep"\nguaranteed = 1\n' for name in ("course", "lab")
    )
    seen = look(
        quotas(text),
        mixed(),
        ask(1, 1, "course", BATCH_S, name="batch", gpu_type="H100", **OLD),
        ask(2, 1, "lab", 708, gpu_type="L4"),
        ask(600, 1, "dep", 900, name="fast", gpu_type="H100"),
        ask(601, 1, "dep", 900, name="slow", gpu_type="L4", **LONG),
        ask(700, 1, "course", 900, name="any"),
        last=HOUR_S,
    )
    assert waits(seen, "any") == [10]
    keeps_all(seen)


def test_a_larger_request_of_a_lender_lends_nothing_to_others() -> None:
    """It waits for cells of others; a session of its own project leaves for it, and nobody has what is kept."""
    seen = look(
        quotas("[projects.lender]\nguaranteed = 3\nlimit = 4\nlending_limit = 0\n"),
        nodes(1, 4),
        ask(1, 1, "guests", BATCH_S, name="first", **OLD),
        ask(2, 1, "lender", BATCH_S, name="runs", **OLD),
        ask(3, 1, "lender", 697, name="hot", **OLD),
        ask(600, 1, "lender", 900, name="large", gpus=3, **OLD),
        ask(601, 1, "club", 900, name="next"),
        last=HOUR_S,
    )
    assert waits(seen, "next")[0] > HOUR_S
    keeps_all(seen)


def test_what_goes_in_a_project_no_longer_counts_for_what_is_left_to_it() -> None:
    """A cell goes for a higher class of its project: the other one is what the project is guaranteed; guests give."""
    seen = look(
        promised(lab=1, course=2),
        nodes(1, 4),
        ask(1, 1, "lab", BATCH_S, name="batch", **OLD),
        ask(100, 2, "guests", 1500, closes_ms=0),
        ask(500, 1, "lab", BATCH_S, name="types"),
        ask(700, 1, "lab", 900, name="higher"),
        ask(701, 1, "course", 900, name="one"),
        ask(702, 1, "course", 900, name="two"),
        last=1200,
    )
    assert seen.asked_to_leave("types0") == []
    assert waits(seen, "one") <= [SOON_S]
    assert waits(seen, "two") <= [SOON_S]
    keeps_all(seen)


def test_a_lender_has_what_it_keeps_while_others_wait_for_a_cell_of_their_own() -> None:
    """The course waits for its batch cell on the other node, and could start here only after that."""
    seen = look(
        quotas("[projects.lender]\nguaranteed = 2\nlending_limit = 1\n[projects.course]\nguaranteed = 2\n"),
        mixed(),
        at(0, hi.Joins(AgentId("other"), hi.gpus(2, L4))),
        ask(1, 1, "lender", 709, name="was", gpu_type="L4", closes_ms=0),
        ask(2, 1, "guests", BATCH_S, gpu_type="H100", **OLD),
        ask(3, 2, "course", BATCH_S, name="batch", **OLD),
        ask(700, 1, "course", 900),
        ask(705, 1, "lender", 900, name="typed", gpu_type="H100"),
        ask(711, 1, "lender", 900, name="next"),
        last=HOUR_S,
    )
    assert waits(seen, "next") == [0]
    assert waits(seen, "course") <= [SOON_S]
    keeps_all(seen)


def test_no_gpu_idles_for_a_type_while_what_goes_is_for_another_type() -> None:
    """All are the course's: an L4 goes for its second request, so the first one has the H100, which is free before."""
    seen = look(
        promised(course=3),
        mixed(1, 2),
        ask(1, 1, "course", BATCH_S, name="own", gpu_type="L4", **OLD),
        ask(2, 1, "guests", BATCH_S, name="fast", gpu_type="H100", **OLD),
        ask(640, 1, "guests", 1500, name="slow", gpu_type="L4", **OLD),
        ask(690, 1, "course", 900, name="any"),
        ask(691, 1, "course", 900, name="typed", gpu_type="L4"),
        ask(692, 1, "course", 900, name="other", gpu_type="H100", **OLD),
        last=HOUR_S,
    )
    assert waits(seen, "any") <= [SOON_S]
    keeps_all(seen)


def test_nobody_goes_for_who_is_to_have_what_a_cell_on_several_gpus_leaves_over() -> None:
    """The course's types takes back a cell on two; the guest, who may be taken from later, keeps what it has (2)."""
    seen = look(
        quotas(
            "[projects.lab]\nguaranteed = 1\n[projects.course]\nguaranteed = 2\n"
            '[qos.interactive]\ngrace = "10 s"\n[qos.batch]\ngrace = "2 min"\n'
        ),
        mixed(2, 1),
        ask(1, 1, "course", BATCH_S, name="two", gpus=2, gpu_type="H100", **LONG),
        ask(100, 1, "guests", BATCH_S),
        ask(110, 1, "lab", BATCH_S),
        ask(130, 1, "course", 600, name="types", gpu_type="H100"),
        last=600,
    )
    assert (waits(seen, "types"), waits(seen, "lab")) == ([120], [140])
    assert (left(seen, "two"), left(seen, "guests")) == (1, 0)
