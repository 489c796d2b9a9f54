"""Dated reservations, in the quota file."""

import tomllib
from datetime import UTC, datetime

import jsonschema
import pytest

from gpu_worker.quotas import Quotas, difference, parse_quotas
from gpu_worker.quotas.reservation_settings import RESERVATION_SETTINGS
from gpu_worker.quotas.schema import quota_schema
from gpu_worker.quotas.value_kinds import QuotaSetting
from tests.unit.gpu_worker.quotas.quota_texts import EXAM, accepts, said, toml, yml


def test_a_reservation_is_from_one_time_to_another_also_over_midnight() -> None:
    quotas, warnings = toml(EXAM)
    assert warnings == []
    [exam] = quotas.reservations
    assert (exam.project, exam.users, exam.guaranteed_milli) == ("cs101", ("ann", "bob"), 4000)
    begin_ms = int(datetime(2026, 12, 1, 21, tzinfo=UTC).timestamp()) * 1000
    assert (exam.begin_ms, exam.end_ms) == (begin_ms, begin_ms + 4 * 3_600_000)
    assert [exam.is_on(at_ms) for at_ms in (begin_ms - 1, begin_ms, exam.end_ms - 1, exam.end_ms)] == [
        False, True, True, False,
    ]  # fmt: skip
    text = (
        "reservations: {exam: {project: cs101, users: [ann, bob], gpus: 4, from: 2026-12-01T22:00, "
        "until: 2026-12-02T02:00, time_zone: Europe/Berlin}}\nprojects: {cs101: {guaranteed: 1}}"
    )
    assert yml(text) == quotas


def test_what_is_reserved_for_users_is_a_project_inside_theirs() -> None:
    course, inner = toml(EXAM)[0].settings.projects
    assert (inner.id, inner.parent, inner.users) == ("exam in cs101", "cs101", ("ann", "bob"))
    assert (course.reservations, inner.reservations) == ((), toml(EXAM)[0].reservations)
    everybody = EXAM.replace('users = ["ann", "bob"]', "")
    [course] = toml(everybody)[0].settings.projects
    assert (course.users, course.reservations) == ((), toml(everybody)[0].reservations)


def test_clocks_that_show_a_time_twice_or_never_bound_a_reservation_too() -> None:
    def times(begin: str, end: str) -> tuple[int, int]:
        text = EXAM.replace("2026-12-01T22:00", begin).replace("2026-12-02T02:00", end)
        [one] = toml(text)[0].reservations
        return one.begin_ms, one.end_ms

    def utc(*when: int) -> int:
        return int(datetime(*when, tzinfo=UTC).timestamp()) * 1000  # type: ignore[misc]

    assert times("2026-10-25T02:30", "2026-10-25T02:30") == (utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30))
    assert times("2026-03-29T02:30", "2026-03-29T03:30") == (utc(2026, 3, 29, 1), utc(2026, 3, 29, 1, 30))


def test_a_reservation_that_cannot_be_is_an_error_with_its_line() -> None:
    def wrong(*changes: tuple[str, str]) -> list[str]:
        text = EXAM
        for old, new in changes:
            text = text.replace(old, new)
        return said(text, "q.toml")

    assert wrong(("2026-12-02T02:00", "2026-12-01T22:00")) == [
        "q.toml:9: reservations.exam ends at 2026-12-01T22:00, which is not after it begins. Write a later time."
    ]
    skipped = ("2026-12-01T22:00", "2027-03-28T02:15"), ("2026-12-02T02:00", "2027-03-28T02:45")
    assert wrong(*skipped) == [
        (
            "q.toml:9: reservations.exam is in an hour that the clocks of Europe/Berlin skip on that day, until "
            "2027-03-28T02:45. Write a later time."
        )
    ]
    assert wrong(("2026-12-02T02:00", "2026-12-32T02:00")) == [
        (
            "q.toml:9: reservations.exam.until is '2026-12-32T02:00'. Write a day that there is and a time of that "
            'day, in quotes, as in "2026-12-01T10:00".'
        )
    ]
    assert wrong(('project = "cs101"', 'project = "cs102"')) == [
        "q.toml:5: 'exam' is for 'cs102', which is not there. Did you mean cs101?"
    ]
    assert wrong(("gpus = 4", "gpus = 0")) == [
        "q.toml:7: reservations.exam reserves nothing. Write how many GPUs, or leave it out."
    ]
    assert wrong(('users = ["ann", "bob"]', "users = []")) == [
        (
            "q.toml:6: reservations.exam.users is an empty list. "
            'Write a list of 1 to 100 names, each once, as in ["ann", "bob"].'
        )
    ]
    assert wrong(("gpus = 4\n", "")) == ["q.toml:4: reservations.exam does not say gpus. Write it."]
    assert wrong(("[projects.cs101]", "[projects.'exam in cs101']\n[projects.cs101]")) == [
        ("q.toml:5: 'exam' counts as 'exam in cs101', and a project is called so. Give one of them another name.")
    ]
    limited = wrong(("guaranteed = 1", "limit = 2"), ('users = ["ann", "bob"]\n', ""))
    assert limited == [
        (
            "q.toml:4: 'cs101' has 4 GPUs guaranteed in its reservation 'exam' and a limit of 2 GPUs. Raise the limit "
            "or lower the guarantee."
        )
    ]


def test_who_is_in_two_reservations_at_a_time_is_an_error() -> None:
    other = EXAM[EXAM.index("[reservations") :].replace("exam", "demo")
    later = other.replace("2026-12-02T02:00", "2026-12-02T03:00").replace("2026-12-01T22:00", "2026-12-02T02:00")
    assert toml(EXAM + later)[1] == []
    assert said(EXAM + later.replace("T02:00", "T01:59"), "q.toml") == [
        (
            "q.toml:13: 'ann' is in 'demo' and in 'exam', which are for 'cs101' at the same time. Take one of the two "
            "out, or let one end before the other begins."
        )
    ]
    assert toml(EXAM + other.replace('["ann", "bob"]', '["eve"]'))[1] == []


def test_more_than_there_is_in_a_reservation_is_a_warning_and_one_that_is_over_nothing_else() -> None:
    _, [warning] = toml(EXAM, capacity_milli=3000)
    assert str(warning) == (
        "q.toml:4: warning: 4 GPUs are guaranteed on Tue at 22:00 Europe/Berlin, and the pool has 3 GPUs. When all "
        "are asked for, some will wait. Lower some, or add a node."
    )
    over_ms = toml(EXAM)[0].reservations[0].end_ms
    quotas, [warning] = parse_quotas(EXAM.encode(), "q.toml", 3000, over_ms)
    assert str(warning) == "q.toml:4: warning: 'exam' is over and does nothing. Leave it out."
    assert len(quotas.reservations) == 1
    everybody = EXAM.replace('users = ["ann", "bob"]', "").replace("gpus = 4", "gpus = 1")
    _, [warning] = toml(everybody)
    assert str(warning) == (
        "q.toml:7: warning: 'cs101' has 1 GPU guaranteed at any time: 'exam' with 1 GPU does nothing. Write more, or "
        "leave it out."
    )


def test_changes_of_reservations_are_told() -> None:
    one, two = toml(EXAM)[0], toml(EXAM.replace("gpus = 4", "gpus = 5").replace('["ann", "bob"]', '["ann"]'))[0]
    assert [str(change) for change in difference(one, two)] == [
        "users of reservation 'exam': 'ann', 'bob' -> 'ann'",
        "gpus of reservation 'exam': 4 GPUs -> 5 GPUs",
    ]
    [added] = [change for change in difference(Quotas(), one) if change.what == "reservation"]
    assert str(added) == (
        "reservation 'exam' added, with project 'cs101', users 'ann', 'bob', gpus 4 GPUs, from 2026-12-01T22:00, until "
        "2026-12-02T02:00, time_zone Europe/Berlin"
    )


@pytest.mark.parametrize("word", RESERVATION_SETTINGS, ids=lambda one: one.name)
def test_the_schema_takes_the_reservations_that_the_reader_takes(word: QuotaSetting) -> None:
    check = jsonschema.Draft202012Validator(quota_schema())
    written = {one.name: tomllib.loads(f"x = {one.example}")["x"] for one in RESERVATION_SETTINGS}
    values = [
        1, 0, -1, True, None, "", "10:00", "2026-12-01", "2026-12-01T10:00", "2026-12-01 10:00", "2026-12-01T24:00",
        ["ann"], ["ann", "ann"], [], [""], "UTC", "ann",
    ]  # fmt: skip
    assert check.is_valid({"reservations": {"y": written}})
    for value in values:
        is_read = accepts(word, tuple(value) if isinstance(value, list) else value)
        is_form = check.is_valid({"reservations": {"y": written | {word.name: value}}})
        if word.name != "time_zone" or not isinstance(value, str):
            assert is_form == is_read, value
