"""Crowds, as sites know them: a class that begins, the evening before a deadline, people who type beside batch work."""

import random

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import left, look, quotas

LONG = 11 * HOUR_S


def typing(name: str, project: str, cells: int, run_s: float, think_s: float, **more: object) -> hi.Opens:
    return notebook(name, project, *[run_s] * cells, think_s=think_s, **more)


def times_lost(seen: Seen, session: str) -> int:
    return len(seen.asked_to_leave(session))


def test_a_class_of_64_types_on_16_gpus_that_a_lab_has_filled() -> None:
    draw = random.Random(64)
    seen = look(
        quotas("[projects.course]\nguaranteed = 16\n[projects.lab]\n"),
        nodes(2, 8),
        [at(1 + n, notebook(f"lab{n}", "lab", LONG, qos="batch")) for n in range(16)],
        [
            at(
                900 + draw.random() * 120,
                typing(f"student{n}", "course", 2, draw.randint(10, 60), draw.randint(60, 200)),
            )
            for n in range(64)
        ],
        last=1800,
    )
    waited = sorted(seen.wait(f"student{n}") for n in range(64))
    assert waited[32] <= MINUTE_S
    assert waited[-1] <= 5 * MINUTE_S
    assert left(seen, "student") == 0


def test_on_the_evening_before_a_deadline_nobody_begins_again_and_again() -> None:
    """Three labs of a department: twelve people, of whom half have two cells of forty minutes."""
    draw = random.Random(12)
    names = [
        (f"{lab}-{user}-{n}", lab, f"{lab}{user}") for lab in "abc" for user in range(4) for n in range(1 + user % 2)
    ]
    text = "[projects.school]\nguaranteed = 8\n" + "".join(f'[projects.{lab}]\nparent = "school"\n' for lab in "abc")
    seen = look(
        quotas(text),
        nodes(1, 8),
        [
            at(draw.random() * HOUR_S, notebook(name, lab, 40 * MINUTE_S, user=user, qos="batch", closes_ms=0))
            for name, lab, user in names
        ],
        last=5 * HOUR_S,
    )
    assert max(times_lost(seen, name) for name, *_ in names) <= 5
    assert seen.running()[-1][1] == {}, "all are done"
    assert max(seen.wait(name) for name, _, _ in names) <= 80 * MINUTE_S


def test_ten_who_type_do_not_wait_for_the_batch_of_one() -> None:
    draw = random.Random(10)
    seen = look(
        quotas("[projects.p]\nguaranteed = 8\n"),
        nodes(1, 8),
        [at(1 + n, notebook(f"batch{n}", "p", LONG, user="ann", qos="batch")) for n in range(8)],
        [at(600 + 5 * n, typing(f"t{n}", "p", 6, draw.randint(5, 40), draw.randint(20, 90))) for n in range(10)],
        last=2400,
    )
    assert max(seen.wait(f"t{n}") for n in range(10)) <= 2 * MINUTE_S
    assert left(seen, "t") == 0
