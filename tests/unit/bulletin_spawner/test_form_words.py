"""What the pool answers is told in a form without options that nobody can type there."""

import pytest

from bulletin.ids import ProjectId
from bulletin.units import HOUR_MS
from bulletin_spawner.form_words import describe_refusal, without_options
from gpu_worker.broker.refusal_advice import how_to_ask
from gpu_worker.scheduler import actions

TOO_LONG = actions.WalltimeTooLong("reserved", 8 * HOUR_MS, 4 * HOUR_MS)
REFUSED = [
    TOO_LONG,
    actions.UnknownQoS("none", ("interactive", "reserved")),
    actions.QoSNotAllowed(ProjectId("lab"), "reserved", ("interactive",)),
    actions.TooLongForProject(ProjectId("lab"), 8 * HOUR_MS, HOUR_MS),
    actions.TooManyPerCell(2, 1, ProjectId("lab"), "reserved", on_cpu=False),
    actions.TooManyGpus(9, 4, on_cpu=False),
    actions.OverLimit(ProjectId("lab"), 2000, 1000, of_user=True, on_cpu=False),
    actions.OverBudget(ProjectId("lab"), 1000, 8 * HOUR_MS, HOUR_MS, "week", on_cpu=False),
    actions.NeverInQuota("reserved", ProjectId("lab"), 1000, 0, on_cpu=False),
]


@pytest.mark.parametrize("reason", REFUSED, ids=lambda one: type(one).__name__)
def test_a_refusal_says_why_and_no_option(reason: object) -> None:
    said = describe_refusal("GPU all day", str(reason))
    assert said.startswith("The pool refused 'GPU all day'. "), said
    assert "--" not in said, said
    assert said.endswith(
        "Choose another notebook here, or start one on CPUs, whose cells ask for less. Admins set what each has."
    ), said
    why = said.removeprefix("The pool refused 'GPU all day'. ")
    assert why[:20].lower() == str(reason)[:20].lower(), "the reason itself stays"


def test_the_line_that_asks_for_more_stays_and_it_is_said_where_to_type_it() -> None:
    said = describe_refusal("GPU all day", f"{TOO_LONG}{how_to_ask(TOO_LONG, None)}")
    assert said == (
        "The pool refused 'GPU all day'. A walltime of 8 h is more than the 4 h that QoS 'reserved' gives. "
        'To ask for it: `%gpu request --time 8h --why "..."`. '
        "Start a notebook on CPUs and type that in a cell, or choose another notebook here."
    )


def test_of_a_reason_to_wait_the_advice_alone_goes() -> None:
    waits = (
        "project 'ml' has 0.5 GPU-hours left this week beside what runs, and yours may take 2 GPU-hours: ask for less "
        "with --time; the next one begins in 3 days."
    )
    assert without_options(waits) == (
        "project 'ml' has 0.5 GPU-hours left this week beside what runs, and yours may take 2 GPU-hours; "
        "the next one begins in 3 days."
    )
    assert without_options("4 requests are before yours.") == "4 requests are before yours."
