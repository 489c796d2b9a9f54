"""The quota file: what it means, and what is said of one that is wrong, with file and line."""

import contextlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from hypothesis import example, given, settings, strategies as st

from bulletin.errors import BadConfig
from bulletin.ids import ProjectId
from gpu_worker.quotas import (
    LIMIT_BYTES,
    Finding,
    QuotaChange,
    Quotas,
    difference,
    from_toml,
    parse_quotas,
    read_quotas,
)
from gpu_worker.quotas.class_hours_settings import CLASS_HOURS_SETTINGS
from gpu_worker.quotas.findings import MOST_ERRORS
from gpu_worker.quotas.quota_settings import PROJECT_SETTINGS, QOS_SETTINGS, SCHEDULER_SETTINGS, read_setting
from gpu_worker.quotas.reservation_settings import RESERVATION_SETTINGS
from gpu_worker.quotas.schema import quota_schema
from gpu_worker.quotas.tree import DEPTH, TreeLeaf, TreeTable
from gpu_worker.quotas.value_kinds import Duration, Factor, GpuAmount, GpuHours, QuotaSetting, UnfitValue
from gpu_worker.quotas.zones import find_zone
from gpu_worker.scheduler.policy.class_hours import ClassHours, Zone
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, Budget, Preemption, Project, QoS, SchedulerSettings

HERE = Path(__file__).parents[4]
QUICK = settings(max_examples=150, deadline=None)


def toml(text: str, capacity_milli: int | None = None) -> tuple[Quotas, list[Finding]]:
    return parse_quotas(text.encode(), "q.toml", capacity_milli)


def yml(text: str) -> Quotas:
    return parse_quotas(text.encode(), "q.yaml")[0]


def said(text: str, file: str) -> list[str]:
    with pytest.raises(BadConfig) as caught:
        parse_quotas(text.encode(), file)
    return str(caught.value).split("\n")


# --- what a file means ----------------------------------------------------------------------------------------------


def test_the_example_is_the_same_in_both_languages() -> None:
    quotas, warnings = read_quotas(HERE / "examples" / "quotas.toml", capacity_milli=12_000)
    assert warnings == []
    assert read_quotas(HERE / "examples" / "quotas.yaml", capacity_milli=12_000) == (quotas, [])
    by_id = {str(one.id): one for one in quotas.projects}
    assert by_id["physics"] == Project(
        id=ProjectId("physics"),
        parent=ProjectId("science"),
        guaranteed_milli=4000,
        limit_milli=8000,
        weight=3,
        lending_limit_milli=3000,
        user_limit_milli=4000,
    )
    assert by_id["biology"].guaranteed_milli == 2500
    assert by_id["biology"].budget == Budget(200 * 3_600_000, "week")
    assert not by_id["deep-learning-course"].can_borrow
    [exercises] = by_id["deep-learning-course"].class_hours
    assert (exercises.days, exercises.from_minute, exercises.until_minute) == ((0, 3), 600, 720)
    assert quotas.qos[0] == QoS(
        name="interactive", priority=200, walltime_ms=45 * 60_000, queued_per_user=20, patience_ms=30 * 60_000
    )
    assert quotas.qos[1:4] == DEFAULT_QOS[1:]
    assert quotas.qos[4] == QoS(
        name="overnight",
        priority=50,
        walltime_ms=14 * 3_600_000,
        queued_per_user=10,
        running_per_user=2,
        grace_ms=120_000,
        min_runtime_ms=600_000,
        preemption=Preemption.REQUEUE,
        usage_percent=50,
    )


def test_what_is_set_of_the_scheduler_is_what_it_is_told() -> None:
    quotas, warnings = toml('[scheduler]\nlook_ahead = 32\nback_off = "5 s"\nlongest_back_off = "1 min"\n')
    assert warnings == []
    assert (quotas.look_ahead, quotas.back_off_ms, quotas.longest_back_off_ms) == (32, 5000, 60_000)
    assert quotas.settings == SchedulerSettings(look_ahead=32, back_off_ms=5000, longest_back_off_ms=60_000)
    assert Quotas().settings == SchedulerSettings()
    assert [str(change) for change in difference(Quotas(), quotas)] == [
        "look_ahead of the scheduler: 16 -> 32",
        "back_off of the scheduler: 10 s -> 5 s",
        "longest_back_off of the scheduler: 10 min -> 1 min",
    ]
    assert yml("scheduler:\n") == Quotas()


def test_prices_are_by_words_of_a_name_in_the_order_of_the_file() -> None:
    quotas, warnings = toml('[prices]\n"H100 NVL" = 3\nH100 = 4.0\nL4 = 0.25\n')
    assert warnings == []
    assert quotas.prices == quotas.settings.prices
    assert quotas.prices == (Price("H100 NVL", 300), Price("H100", 400), Price("L4", 25))
    assert yml("prices:\n  H100 NVL: 3\n  H100: 4.0\n  L4: 0.25\n") == quotas
    assert toml("[prices]\n")[0] == Quotas()


def test_what_is_no_price_is_an_error_with_its_line() -> None:
    assert said('[prices]\nH100 = "dear"\nL4 = 0.001\nT4 = 101\n"!!" = 2\nA = {x = 1}\n', "q.toml") == [
        "q.toml:2: prices.H100 is 'dear'. Write a number from 0 to 100 with at most two decimals, as in 0.5.",
        "q.toml:3: prices.L4 is 0.001. Write a number from 0 to 100 with at most two decimals, as in 0.5.",
        "q.toml:4: prices.T4 is 101. Write a number from 0 to 100 with at most two decimals, as in 0.5.",
        "q.toml:5: prices.'!!' has no word of a GPU's name. Write one, as in H100 = 4.0.",
        "q.toml:6: prices.A is a table. Write a number from 0 to 100 with at most two decimals, as in 0.5.",
    ]
    assert said("prices: 3", "q.yaml") == ["q.yaml:1: prices is 3. Write names with a number each below it."]
    many = "[prices]\n" + "".join(f"g{number} = 2\n" for number in range(102))
    assert said(many, "q.toml") == ["q.toml:102: There are more than 100 prices. Write fewer."]


def test_a_price_that_another_one_stands_before_is_a_warning() -> None:
    _, [warning] = toml('[prices]\nH100 = 4\n"H100 NVL" = 3')
    assert str(warning) == (
        "q.toml:3: warning: Each GPU with the name 'H100 NVL' has the price of 'H100', which stands before it. Write "
        "'H100 NVL' first, or leave it out."
    )


def test_changes_of_prices_are_told_their_order_too() -> None:
    one, two = toml("[prices]\nA100 = 2\nH100 = 4")[0], toml("[prices]\nH100 = 4\nA100 = 3\nL4 = 0.5")[0]
    assert [str(change) for change in difference(one, two)] == [
        "factor of price 'A100': 2 -> 3",
        "price 'L4' added, with factor 0.5",
    ]
    assert [str(change) for change in difference(one, toml("[prices]\nH100 = 4\nA100 = 2")[0])] == [
        "order of the prices: A100, H100 -> H100, A100"
    ]
    assert next(str(change) for change in difference(one, Quotas())) == "price 'A100' removed, had factor 2"


@pytest.mark.parametrize("value", [0, 1, 4.0, 0.25, 0.001, 101, -1, True, None, "4", "", [], {}])
def test_the_schema_takes_the_prices_that_the_reader_takes(value: Any) -> None:
    is_form = jsonschema.Draft202012Validator(quota_schema()).is_valid({"prices": {"H100": value}})
    try:
        parse_quotas(json.dumps({"prices": {"H100": value}}).encode(), "q.yaml")
        assert is_form
    except BadConfig:
        assert not is_form or value == 0.001, "how many decimals, only the reader knows"


EXAM = """
[projects.cs101]
guaranteed = 1
[reservations.exam]
project = "cs101"
users = ["ann", "bob"]
gpus = 4
from = "2026-12-01T22:00"
until = "2026-12-02T02:00"
time_zone = "Europe/Berlin"
"""


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
        'q.toml:6: reservations.exam.users is a list. Write a list of 1 to 100 names, each once, as in ["ann", "bob"].'
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


def test_what_a_cell_of_a_project_may_ask_for() -> None:
    text = '[projects.a]\nqos = ["interactive", "night"]\ndefault_qos = "night"\ngpus_per_cell = 2\nwalltime = "4 h"\n'
    quotas, warnings = toml(text + '[qos.night]\nwalltime = "8 h"\ngpus_per_cell = 4\n')
    assert warnings == []
    [project] = quotas.projects
    assert (project.qos, project.default_qos) == (("interactive", "night"), "night")
    assert (project.gpus_per_cell, project.walltime_ms, quotas.qos[-1].gpus_per_cell) == (2, 4 * 3_600_000, 4)
    assert next(str(change) for change in difference(Quotas(), quotas)) == (
        "project 'a' added, with qos 'interactive', 'night', default_qos 'night', gpus_per_cell 2, walltime 4 h"
    )


def test_a_class_that_there_is_not_is_an_error() -> None:
    assert said('[projects.a]\nqos = ["interactiv"]\ndefault_qos = "gold"', "q.toml") == [
        "q.toml:2: qos of 'a' names 'interactiv', which is no class of service here. Did you mean interactive?",
        (
            "q.toml:3: default_qos of 'a' names 'gold', which is no class of service here. There are interactive, "
            "batch, long, reserved."
        ),
        (
            "q.toml:3: A cell of 'a' that names no class has 'gold', which it may not use: it may use interactiv. "
            "Write another default_qos for 'a', or add 'gold' to its qos."
        ),
    ]
    assert said('[projects.a]\nqos = "batch"', "q.toml") == [
        (
            "q.toml:2: projects.a.qos is 'batch'. Write a list of classes of service, each once, as in "
            '["interactive", "batch"].'
        )
    ]


def test_a_default_that_an_inner_project_may_not_use_is_an_error() -> None:
    text = '[projects.d]\ndefault_qos = "batch"\n[projects.a]\nparent = "d"\nqos = ["interactive"]\n'
    assert said(text, "q.toml") == [
        (
            "q.toml:5: A cell of 'a' that names no class has 'batch', which it may not use: it may use interactive. "
            "Write another default_qos for 'a', or add 'batch' to its qos."
        )
    ]
    assert toml(text + 'default_qos = "interactive"\n')[1] == []


def test_more_gpus_for_a_cell_than_the_project_has_is_a_warning() -> None:
    _, [warning] = toml("[projects.a]\nlimit = 2\ngpus_per_cell = 4")
    assert str(warning) == (
        "q.toml:3: warning: 'a' lets a cell have 4 GPUs, and has a limit of 2 GPUs itself: gpus_per_cell does nothing. "
        "Lower it, or leave it out."
    )


def test_what_the_scheduler_cannot_be_told_is_an_error_with_its_line() -> None:
    assert said('[scheduler]\nlook_ahead = 0\nback_off = 10\npatience = "1 h"', "q.toml") == [
        "q.toml:2: scheduler.look_ahead is 0. Write a whole number from 1 to 1000000.",
        (
            'q.toml:3: scheduler.back_off is 10. Write a number and a unit in quotes, as in "30 min"; units are ms, s, '
            "min, h, d, and it goes from 0 s to 1 d."
        ),
        "q.toml:4: 'patience' is not known in scheduler. Write one of look_ahead, back_off, longest_back_off.",
    ]
    assert said("scheduler: 3", "q.yaml") == ["q.yaml:1: scheduler is 3. Write its settings below it."]


def test_a_back_off_above_the_longest_one_is_a_warning() -> None:
    _, [warning] = toml('[scheduler]\nback_off = "2 h"')
    assert str(warning) == (
        "q.toml:2: warning: longest_back_off is 10 min, and back_off is 2 h: a project never stands behind others for "
        "longer than 10 min. Raise longest_back_off, or lower back_off."
    )


@pytest.mark.parametrize("empty", ["", "\n\n", "# nothing yet\n", "\ufeff", "\ufeff# nothing\r\n"])
def test_an_empty_file_is_the_defaults(empty: str) -> None:
    assert toml(empty) == (Quotas(), [])
    assert yml(empty) == Quotas(projects=(), qos=DEFAULT_QOS)


def test_a_table_without_settings_is_no_error_in_yaml() -> None:
    assert yml("projects:\nqos:\n  batch:\n  # walltime: 1 h\n") == Quotas()
    assert yml("projects: {physics: }").projects == (Project(id=ProjectId("physics")),)
    assert yml("---\n~\n") == Quotas()


def test_amounts_are_exact_to_the_thousandth() -> None:
    text = "[projects.a]\nguaranteed = 0.1\nlimit = 0.143\nuser_limit = 1_000.5e-1\n[qos.batch]\nusage_factor = 0.07"
    quotas, _ = toml(text)
    one = quotas.projects[0]
    assert (one.guaranteed_milli, one.limit_milli, one.user_limit_milli) == (100, 143, 100_050)
    assert quotas.qos[1].usage_percent == 7


def test_a_limit_that_comes_with_a_class_can_be_lifted() -> None:
    assert toml('[qos.long]\nrunning_per_user = "unlimited"')[0].qos[2].running_per_user is None
    lifted = 'limit = "unlimited"\nlending_limit = "unlimited"\nuser_limit = "unlimited"\nbudget = "unlimited"'
    assert toml(f"[projects.a]\nweight = 2\n{lifted}") == toml("[projects.a]\nweight = 2")


def test_names_of_groups_are_text_whatever_yaml_makes_of_them() -> None:
    text = "projects: {no: {weight: 2}, 007: {weight: 2}, 2026-01-01: {weight: 2}, ~: {weight: 2}, a b: {weight: 2}}"
    assert [one.id for one in yml(text).projects] == ["no", "007", "2026-01-01", "~", "a b"]


def test_yes_and_no_are_words_of_yaml() -> None:
    found = yml("projects: {a: {borrow: no, guaranteed: 1}, b: {borrow: yes}, c: {borrow: False}}")
    assert [one.can_borrow for one in found.projects] == [False, True, False]


def test_an_alias_stands_for_what_it_names() -> None:
    found = yml("projects:\n  a: &course\n    guaranteed: &four 4\n  b: *course\n  c: {limit: *four}\n").projects
    assert [one.guaranteed_milli for one in found] == [4000, 4000, 0]
    assert found[2].limit_milli == 4000


def test_every_field_of_the_model_has_its_word() -> None:
    made = {"id", "reservations", "users", "rule"}
    assert {word.field for word in PROJECT_SETTINGS} == set(Project.__struct_fields__) - made
    assert {word.field for word in RESERVATION_SETTINGS} == set(Reservation.__struct_fields__) - {"name"}
    assert {word.field for word in QOS_SETTINGS} == set(QoS.__struct_fields__) - {"name"}


LECTURE = """
[projects.cs101.class_hours.lecture]
days = ["Wed", "Mon"]
from = "10:00"
until = "12:00"
guaranteed = 8
time_zone = "Europe/Berlin"
"""


def test_class_hours_are_tables_by_name() -> None:
    (found,) = toml(LECTURE + 'first_day = "2026-10-12"\nlast_day = "2027-02-05"')[0].projects[0].class_hours
    assert found == ClassHours(
        name="lecture",
        days=(0, 2),
        from_minute=600,
        until_minute=720,
        guaranteed_milli=8000,
        zone=find_zone("Europe/Berlin") or Zone(""),
        first_day=(date(2026, 10, 12) - date(1970, 1, 1)).days,
        last_day=(date(2027, 2, 5) - date(1970, 1, 1)).days,
    )
    several = """
        projects:
          cs101:
            class_hours:
              lecture: {days: [Mon, Wed], from: "10:00", until: "12:00", guaranteed: 8, time_zone: Europe/Berlin}
              all day: {days: [Sun], from: "00:00", until: "24:00", guaranteed: 1.5, time_zone: UTC}
              # tutorial:
          bio: {class_hours: }
    """
    cs101, bio = yml(several).projects
    assert cs101.class_hours[0] == toml(LECTURE)[0].projects[0].class_hours[0]
    assert [(one.name, one.until_minute, one.guaranteed_milli) for one in cs101.class_hours[1:]] == [
        ("all day", 1440, 1500)
    ]
    assert bio.class_hours == ()


def test_class_hours_outlive_the_broker_as_they_are() -> None:
    """The ledger keeps quotas as JSON: those that are read again there are no change."""
    quotas, _ = toml(LECTURE + 'last_day = "2027-02-05"')
    again = msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(quotas))), Quotas)
    assert again == quotas
    assert difference(again, toml(LECTURE + 'last_day = "2027-02-05"')[0]) == []


# --- what is wrong, and where ---------------------------------------------------------------------------------------

#: A file, the line that must be named, and words of the sentence.
BAD_TOML = [
    ("[projects.a]\nguarantee = 4", 2, "Did you mean guaranteed?"),
    ("[projects.a]\nGUARANTEED = 4", 2, "Did you mean guaranteed?"),
    ("[projects.a]\ncolour = 4", 2, "Write one of guaranteed, limit"),
    ("[project.a]\nlimit = 4", 1, "Did you mean projects?"),
    ("\n\nlimit = 4", 3, "at the top of a quota file"),
    ("[projects.a]\n\nguaranteed = -1", 3, "projects.a.guaranteed is -1. Write a number of GPUs from 0 on"),
    ("[projects.a]\nguaranteed = nan", 2, "is NaN. Write a number of GPUs"),
    ("[projects.a]\nlimit = inf", 2, "is Infinity"),
    ("[projects.a]\nlimit = 1e999999999999999999999", 2, "is Infinity"),
    ("[projects.a]\nlimit = 1e99", 2, "is 1E+99"),
    ("[projects.a]\nlimit = 1.0000000000000000000000000000000000001", 2, "at most three decimals"),
    ("[projects.a]\nlimit = 0.0001", 2, "at most three decimals"),
    ("[projects.a]\nlimit = true", 2, "is true. Write a number"),
    ('[projects.a]\nlimit = "8"', 2, "is '8'. Write a number"),
    ("[projects.a]\nlimit = 2026-01-01", 2, "is a date or a time of day"),
    ("[projects.a]\nlimit = 07:30:00", 2, "is a date or a time of day"),
    ("[projects.a]\nlimit = [\n8]", 2, "is a list"),
    ("[projects.a]\nlimit = {gpus = 8}", 2, "is a table"),
    ("[projects.a]\nguaranteed = 'unlimited'", 2, "is 'unlimited'"),
    ("[projects.a]\nlimit = 4\nguaranteed = 5", 2, "Raise the limit or lower the guarantee"),
    ("[projects.a]\nweight = 0", 2, "Write a whole number from 1 to"),
    ("[projects.a]\nweight = 1.5", 2, "is 1.5. Write a whole number"),
    ("[projects.a]\npriority = 10000000", 2, "Write a whole number from -1000000"),
    ("[projects.a]\nborrow = 'no'", 2, "Write true or false"),
    ("[projects.a]\nborrow = 0", 2, "Write true or false"),
    ("[projects.a]\nbudget = 200", 2, '"200 GPU-hours per week"'),
    ("[projects.a]\nbudget = '200 GPU-hours per year'", 2, "the period is day, week or month"),
    ("[projects.a]\nbudget = '-1 GPU-hours per day'", 2, "the period is day, week or month"),
    ("[projects.a]\nbudget = '9999999999 GPU-hours per day'", 2, "from 0 to 1000000000"),
    ("[projects.a]\nweight = 2\nparent = 'b'", 3, "'a' is in 'b', which is not there"),
    ("[projects.a]\nparent = 'a'", 2, "'a' is inside itself"),
    ("[projects.b]\nparent = 'a'\n[projects.a]\nparent = 'b'", 2, "inside itself"),
    ("[projects.a]\nparent = 4", 2, "Write the name of another project"),
    ("[projects.a]\nparent = ''", 2, "Write the name of another project"),
    ("[projects.'']\nweight = 2", 1, "is empty"),
    ("projects = 4", 1, "projects is 4. Write names with their settings below it"),
    ("[projects]\na = 4", 2, "projects.a is 4. Write its settings below it"),
    ("[[projects]]\nname = 'a'", 1, "projects is a list"),
    ("[[projects.a]]\nlimit = 4", 1, "projects.a is a list"),
    (f"[projects]\n{'n' * 300} = {{weight = 2}}", 2, "has 300 characters"),
    ('[projects."a\\u202eb"]\nweight = 2', 1, "characters that cannot be seen"),
    ("[projects.' a']\nweight = 2", 1, "begins or ends with a space"),
    ("[qos.gold]\npriority = 1", 1, "is a new class of service without a walltime"),
    ("[qos.interactiv]\npriority = 1", 1, "if you mean interactive"),
    ("[qos.batch]\nwalltime = 30", 2, 'as in "30 min"'),
    ("[qos.batch]\nwalltime = '30'", 2, 'as in "30 min"'),
    ("[qos.batch]\nwalltime = '30 fortnights'", 2, "units are ms, s, min, h, d"),
    ("[qos.batch]\nwalltime = '-30 min'", 2, "units are ms, s, min, h, d"),
    ("[qos.batch]\nwalltime = '0 min'", 2, "from 1 s to 366 d"),
    ("[qos.batch]\nwalltime = '999999 d'", 2, "from 1 s to 366 d"),
    (f"[qos.batch]\nwalltime = '{'9' * 1000} d'", 2, "is '999"),
    ("[qos.batch]\ngrace = '2 d'", 2, "from 0 s to 1 d"),
    ("[qos.batch]\nqueued_per_user = 0", 2, "Write a whole number from 1"),
    ("[qos.batch]\nrunning_per_user = -2", 2, "Write a whole number from 1"),
    ("[qos.batch]\npreemption = 'kill'", 2, 'Write one of "never", "pause", "requeue"'),
    ("[qos.batch]\npreemption = true", 2, 'Write one of "never"'),
    ("[qos.batch]\nusage_factor = 0.005", 2, "at most two decimals"),
    ("[qos.batch]\nusage_factor = 101", 2, "from 0 to 100"),
    ("[qos.batch]\nmust_be_in_quota = 1", 2, "Write true or false"),
    ("[projects.a]\nlimit = 4\nlimit = 5", 3, "projects.a.limit is there twice, first in line 2. Leave one out."),
    ("[projects.a]\nlimit = 4\n[projects.b]\n[projects.a]", 4, "projects.a is there twice, first in line 1"),
    ("projects.a = {limit = 4, limit = 5}", 1, "projects.a.limit is there twice"),
    ("[qos.batch]\nwalltime = 30 min", 2, "This is not TOML"),
    ("[qos.batch]\n\nwalltime: '30 min'", 3, "This is not TOML"),
    ("[projects.a]\nborrow = False", 2, "true and false are written small"),
    ("[projects.a\nlimit = 1", 1, "This is not TOML"),
    ("[qos.batch]\nwalltime = '''30 min", 2, "This is not TOML"),
    ("[projects.a]\nlimit = " + "9" * 1900, 2, "is 9"),
    ("[projects.a]\nclass_hours = 8", 2, "projects.a.class_hours is 8. Write its settings below it"),
    ("[[projects.a.class_hours]]\ndays = ['Mon']", 1, "projects.a.class_hours is a list"),
    ("[projects.a.class_hours.x]\ndays = ['Mon']", 1, "does not say from, until, guaranteed, time_zone. Write it."),
    (LECTURE.replace('"Wed", "Mon"', '"Wednesday"'), 3, "is a list. Write a list of days, each once"),
    (LECTURE.replace('"Wed", "Mon"', '"Mon", "Mon"'), 3, "Write a list of days, each once"),
    (LECTURE.replace('["Wed", "Mon"]', "[]"), 3, "days are Mon, Tue, Wed"),
    (LECTURE.replace('["Wed", "Mon"]', "[1]"), 3, "is a list. Write a list of days"),
    (LECTURE.replace('["Wed", "Mon"]', "'Mon'"), 3, "is 'Mon'. Write a list of days"),
    (LECTURE.replace('"10:00"', '"9:00"'), 4, 'with two digits for the hour, as in "09:30".'),
    (LECTURE.replace('"10:00"', '"24:00"'), 4, "is '24:00'. Write a time of day"),
    (LECTURE.replace('"10:00"', "10:00:00"), 4, "is a date or a time of day. Write a time of day in quotes"),
    (LECTURE.replace('"12:00"', '"25:00"'), 5, 'the end of the day is "24:00"'),
    (LECTURE.replace('"12:00"', '"10:00"'), 5, "class_hours.lecture ends at 10:00, which is not after it begins."),
    (LECTURE.replace("= 8", "= -1"), 6, "Write a number of GPUs from 0 on"),
    (LECTURE.replace("Berlin", "Brelin"), 7, "Did you mean Europe/Berlin? Write the name of a time zone"),
    (LECTURE.replace("Europe/Berlin", "localtime"), 7, "is 'localtime'. Write the name of a time zone"),
    (LECTURE.replace('"Europe/Berlin"', "1"), 7, 'as in "Europe/Berlin" or "UTC"'),
    (LECTURE + 'first_day = "2026-02-30"', 8, "Write a day that there is"),
    (LECTURE + "first_day = 2026-10-12", 8, 'in quotes, as in "2026-10-12"'),
    (LECTURE + 'first_day = "2026-10-13"\nlast_day = "2026-10-13"', 5, "never comes"),
    (LECTURE + "gpus = 4", 8, "'gpus' is not known in projects.cs101.class_hours.lecture"),
    (LECTURE + "[projects.cs101]\nlimit = 4", 2, "in its class hours 'lecture' and a limit of 4 GPUs"),
    ("x = 1 # " + "y" * 3000, 1, "longer than 2000 characters"),
]  # fmt: skip

BAD_YAML = [
    ("projects:\n  a:\n    guarantee: 4", 3, "Did you mean guaranteed?"),
    ("projects:\n  a:\n    guaranteed: -1", 3, "projects.a.guaranteed is -1"),
    ("projects:\n  a:\n    limit: .nan", 3, "is NaN"),
    ("projects:\n  a:\n    limit: -.inf", 3, "is -Infinity"),
    ("projects:\n  a:\n    limit: 1e3", 3, "is '1e3'. Write a number"),
    ("projects:\n  a:\n    limit: 010", 3, "is '010', which YAML takes for another number"),
    ("projects:\n  a:\n    limit: 1:30", 3, "which YAML takes for another number"),
    ("projects:\n  a:\n    limit: 2026-01-01", 3, "is a date"),
    ("projects:\n  a:\n    limit:\n      - 8", 3, "is a list"),
    ("projects:\n  a:\n    limit:", 3, "is empty. Write a value, or leave the line out."),
    ("projects:\n  a:\n    limit: !!python/object/apply:os.system ['true']", 3, "a value with the tag"),
    ("projects:\n  a:\n    limit: !gpus 8", 3, "a value with the tag '!gpus'"),
    ("projects:\n  a:\n    limit: !!binary aGk=", 3, "a value with the tag '!!binary'"),
    ("projects:\n  a: !!set {limit}", 2, "a value with the tag '!!set'"),
    ("projects:\n  a: &a\n    limit: *a", 3, "is a table"),
    ("projects:\n  a: 4", 2, "projects.a is 4"),
    ("projects:\n  - a\n  - b", 1, "projects is a list"),
    ("- projects", 1, "This is not a mapping"),
    ("hello", 1, "This is not a mapping"),
    ("projects:\n  a: {limit: 4}\n  b: {limit: 4}\n  a: {limit: 5}", 4, "projects.a is there twice, first in line 2"),
    ("projects:\n  a:\n    limit: 4\n    limit: 5", 4, "projects.a.limit is there twice, first in line 3"),
    ("projects: {}\nprojects: {}", 2, "projects is there twice, first in line 1"),
    ("x: &d {limit: 4}\nprojects:\n  a:\n    <<: *d", 4, "no merge keys"),
    ("projects:\n  ? [a]\n  : {limit: 4}", 2, "This key is not a name"),
    ("projects:\n  a: *b", 2, "undefined alias"),
    ("projects:\n\ta:\n", 2, "This is not YAML"),
    ("projects:\n  a:\n   limit: 4\n  weight: 1\n b: 1", 5, "This is not YAML"),
    ("projects:\n  a:\n    limit 4\n    weight: 1", 4, "This is not YAML"),
    ("projects: {}\n---\nqos: {}", 2, "This is not YAML"),
    ("projects:\n  a: '4", 2, "This is not YAML"),
    ("projects:\n  a: \x07", 2, "The character U+0007 may not be in YAML"),
    ("qos:\n  gold:\n    priority: 1", 2, "without a walltime"),
    ("qos:\n  batch:\n    walltime: 30", 3, 'as in "30 min"'),
    ("qos:\n  batch:\n    walltime: 24:00:00", 3, "which YAML takes for another number"),
    ('projects:\n  "a\\ud800": {limit: 4}', 2, "characters that cannot be seen"),
    ('projects:\n  a:\n    budget: "\\ud800"', 3, "GPU-hours per week"),
    ("projects:\n  a:\n    class_hours:\n      x:\n        from: 10:00", 5, "Write a time of day in quotes"),
    ("projects:\n  a:\n    class_hours:\n      x:\n        days: [1, 2]", 5, "is a list. Write a list of days"),
    ("projects:\n  a:\n    class_hours:\n      - x", 3, "is a list. Write its settings below it"),
    ("projects:\n  a:\n    class_hours:\n      x:", 4, "does not say days, from, until, guaranteed, time_zone"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "words"), BAD_TOML)
def test_an_error_in_toml_has_its_line(text: str, line: int, words: str) -> None:
    first = said(text, "q.toml")[0]
    assert first.startswith(f"q.toml:{line}: ")
    assert words in first


@pytest.mark.parametrize(("text", "line", "words"), BAD_YAML)
def test_an_error_in_yaml_has_its_line(text: str, line: int, words: str) -> None:
    found = said(text, "q.yaml")
    assert any(one.startswith(f"q.yaml:{line}: ") and words in one for one in found), found


def test_all_errors_are_said_at_once_in_the_order_of_the_file() -> None:
    text = """
        [projects.physics]
        guarantee = 4
        limit = "8"
        parent = "sience"
        [qos.batch]
        walltime = 30
        [projects.biology]
        weight = 0
        parent = "sience"
        [quota]
    """
    assert [one.split(":")[1] for one in said(text, "q.toml")] == ["3", "4", "5", "7", "9", "10", "11"]


def test_one_slip_is_one_error() -> None:
    assert len(said("[projects.a]\nparent = 4\nlimit = -1\nguaranteed = 2", "q.toml")) == 2
    assert len(said("[projects.a]\nguaranteed = -1\nlimit = 3\n[projects.b]\nparent = 'a'", "q.toml")) == 1


def test_a_class_with_a_bad_walltime_is_not_told_that_it_has_none() -> None:
    assert len(said("[qos.gold]\nwalltime = 30", "q.toml")) == 1


def test_what_is_there_twice_is_told_once() -> None:
    assert len(said("projects:\n  a: {limit: 4}\n  a: {limit: 5}", "q.yaml")) == 1
    assert len(said("projects:\n  a:\n    limit: 4\n    limit: -1", "q.yaml")) == 1


def test_many_errors_end_with_a_word_that_there_may_be_more() -> None:
    found = said("".join(f"[projects.p{number}]\nlimit = -1\n" for number in range(3000)), "q.toml")
    assert len(found) == MOST_ERRORS + 1
    assert found[-1] == "q.toml: There may be more errors. Correct these first."


def test_projects_are_nested_no_deeper_than_anybody_needs() -> None:
    deep = "[projects.p0]\nweight = 2\n" + "".join(f"[projects.p{n}]\nparent = 'p{n - 1}'\n" for n in range(1, 3000))
    assert said(deep, "q.toml") == ["q.toml:34: Projects are nested more than 16 deep. Give 'p16' a parent higher up."]
    assert len(toml("\n".join(deep.split("\n")[:32]))[0].projects) == 16


def test_a_large_circle_of_projects_is_one_error() -> None:
    ring = "".join(f"[projects.p{n}]\nparent = 'p{(n + 1) % 5000}'\n" for n in range(5000))
    assert said(ring, "q.toml") == [
        "q.toml:2: 'p0' is inside a circle of projects, or below one. Give one of them another parent."
    ]


@pytest.mark.parametrize("name", ["q.txt", "q", "q.toml.bak", ""])
def test_the_end_of_the_name_says_the_language(name: str) -> None:
    with pytest.raises(BadConfig, match=r"\.toml, \.yaml, \.yml"):
        parse_quotas(b"", name)


def test_bytes_that_are_not_utf8_have_their_line() -> None:
    with pytest.raises(BadConfig, match=r"q\.yaml:2: The byte 0xFC is not UTF-8"):
        parse_quotas("projects:\n  tübingen: {limit: 4}".encode("latin-1"), "q.yaml")
    with pytest.raises(BadConfig, match=r"q\.toml:1: The byte 0xFF is not UTF-8"):
        parse_quotas("limit = 1".encode("utf-16"), "q.toml")


def test_nesting_beyond_reason_is_an_error() -> None:
    assert "nested too deep" in said("x = " + "[\n" * 20_000, "q.toml")[0]
    assert "nested too deep" in said("[\n" * 20_000, "q.yaml")[0]


def test_aliases_of_aliases_are_not_unfolded() -> None:
    lines = ["x0: &x0 {a: 1}"] + [
        f"x{n}: &x{n} {{{', '.join(f'k{m}: *x{n - 1}' for m in range(50))}}}" for n in range(1, 30)
    ]
    assert len(said("\n".join(lines), "q.yaml")) == 30


# --- warnings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[projects.b]\nlimit = 1\n[projects.a]\n", 3, "'a' sets nothing"),
        ("[projects.a]\n\nguaranteed = 5", 3, "5 GPUs are guaranteed, and the pool has 4 GPUs"),
        ("[projects.a]\nlending_limit = 1", 2, "that is no limit"),
        ("[projects.a]\nguaranteed = 2\nlending_limit = 2", 3, "that is no limit"),
        ("[projects.a]\nborrow = false", 2, "its cells never run"),
        ("[projects.a]\nlimit = 2\nuser_limit = 3", 3, "the user's limit does nothing"),
        ("[projects.a]\nlimit = 2\n[projects.b]\nparent = 'a'\nlimit = 3", 5, "its own does nothing"),
        ("[projects.a]\nguaranteed = 1\n[projects.b]\nguaranteed = 2\nparent = 'a'", 2, "It counts as 2 GPUs"),
        (LECTURE.replace("= 8", "= 5"), 2, "on Mon at 10:00 Europe/Berlin, and the pool has 4 GPUs"),
        (LECTURE.replace("= 8", "= 1") + "[projects.cs101]\nguaranteed = 1", 2, "its class hours 'lecture' with 1 GPU"),
        (
            "[projects.a]\nparent = 'cs101'"
            + LECTURE.replace("cs101", "a").replace("= 8", "= 2")
            + "[projects.cs101]\nguaranteed = 1",
            3,
            "2 GPUs are guaranteed inside 'cs101' on Mon at 10:00 Europe/Berlin, which has 1 GPU",
        ),
        ("[projects.b]\nguaranteed = 2" + LECTURE.replace("= 8", "= 3"), 3, "5 GPUs are guaranteed on Mon at 10:00 Eu"),
        ("[qos.batch]\npreemption = 'never'", 2, "is not taken back before their walltime"),
        ("[qos.batch]\nmin_runtime = '1 d'", 2, "its cells are never reclaimed"),
        ("[qos.batch]\nwalltime = '30 s'", 1, "its cells are never reclaimed"),
    ],
)
def test_what_has_no_effect_or_cannot_be_kept_is_a_warning(text: str, line: int, words: str) -> None:
    _, warnings = toml(text, capacity_milli=4000)
    assert [(one.file, one.line, one.is_warning) for one in warnings] == [("q.toml", line, True)]
    assert words in warnings[0].sentence
    assert str(warnings[0]) == f"q.toml:{line}: warning: {warnings[0].sentence}"


def test_classes_that_share_gpus_one_after_the_other_are_no_reason_for_a_warning() -> None:
    other = LECTURE.replace("cs101", "bio").replace("12:00", "14:00").replace("10:00", "12:00")
    assert toml(LECTURE + other, capacity_milli=8000)[1] == []
    text = LECTURE + other.replace("12:00", "11:00")
    assert [one.line for one in toml(text, capacity_milli=8000)[1]] == [9]
    winter = 'last_day = "2027-02-05"'
    assert toml(LECTURE + winter + text[len(LECTURE) :] + 'first_day = "2027-02-06"', capacity_milli=8000)[1] == []
    both = toml(LECTURE + winter + text[len(LECTURE) :] + 'first_day = "2027-02-01"', capacity_milli=8000)[1]
    assert [one.line for one in both] == [9]


def test_a_static_quota_for_class_hours_alone_is_no_reason_for_a_warning() -> None:
    assert toml("[projects.cs101]\nborrow = false\nlending_limit = 3" + LECTURE)[1] == []


def test_no_warning_without_a_reason() -> None:
    text = "[projects.a]\n[projects.b]\nparent = 'a'\nguaranteed = 2\nlending_limit = 1\nborrow = false\nlimit = 2"
    assert toml(text, capacity_milli=2000)[1] == []
    text = "[projects.a]\nlimit = 2\nuser_limit = 2\n[projects.b]\nparent = 'a'\nlimit = 2\nborrow = false"
    assert toml(text)[1] == []


# --- the file itself ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything; for a moment we are somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_is_no_readable_file_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    large = tmp_path / "large.toml"
    with large.open("wb") as file:
        file.truncate(10 * LIMIT_BYTES)
    for path, words in [
        (tmp_path / "none.toml", "There is no such file"),
        (tmp_path / "folder.toml", "This is a folder"),
        (tmp_path / "pipe.toml", "This is not a file"),
        (Path("/dev/null"), "This is not a file"),
        (tmp_path / "loop.toml", "It cannot be read"),
        (tmp_path / ("n" * 300 + ".toml"), "It cannot be read"),
        (large, "It is larger than 1000000 bytes"),
    ]:
        with pytest.raises(BadConfig, match=words) as caught:
            read_quotas(path)
        assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(BadConfig, match="cannot be the name of a file"):
        read_quotas("a\0.toml")


def test_a_file_that_may_not_be_read_is_said_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "q.toml"
    path.write_text("")
    path.chmod(0)
    with as_nobody(), pytest.raises(BadConfig, match="It may not be read"):
        read_quotas(path)


# --- whatever anybody writes ----------------------------------------------------------------------------------------

#: What is near to a quota file: its signs and words in any order.
_SIGNS = [
    *"[]{}=:,.#'\"\\\n\n\n\t -_&*!|>%@?~", "'''", '"""', "\r\n", "<<", "---", "projects", "qos", "a", "[projects.a]\n",
    "\nlimit = ", "\n  limit: ", "4", "0x1F", "1e9", "nan", ".inf",
    "true", "no", "'30 min'", "2026-01-01", "\x00", "\ufeff",
    "\\ud800", "\\U00110000", "!!python/name:os.system ", "&a ", "*a ", "é", "\u2028", "\x85", "[qos.batch]\n",
]  # fmt: skip


def only_bad_config(content: bytes, file: str) -> None:
    try:
        parse_quotas(content, file, 8000)
    except BadConfig as error:
        for line in str(error).split("\n"):
            assert line.startswith(file)
            assert line.isprintable()


@pytest.mark.parametrize("file", ["q.toml", "q.yaml"])
@given(content=st.binary(max_size=60))
@example(b'"\\UFFFFFFFF"')
@example(b"%YAML 1." + b"9" * 1900)
@QUICK
def test_any_bytes_are_quotas_or_a_sentence(file: str, content: bytes) -> None:
    only_bad_config(content, file)


@pytest.mark.parametrize("file", ["q.toml", "q.yaml"])
@given(signs=st.lists(st.sampled_from(_SIGNS), max_size=25))
@QUICK
def test_any_signs_are_quotas_or_a_sentence(file: str, signs: list[str]) -> None:
    only_bad_config("".join(signs).encode("utf-8"), file)


@pytest.mark.parametrize("name", ["quotas.toml", "quotas.yaml"])
@given(data=st.data())
@QUICK
def test_an_example_with_a_slip_is_quotas_or_a_sentence(name: str, data: st.DataObject) -> None:
    text = (HERE / "examples" / name).read_text()
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 5))
    only_bad_config((text[:at] + data.draw(st.sampled_from(_SIGNS)) + text[at + gone :]).encode(), name)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(st.text(max_size=4), inside, max_size=2),
    max_leaves=4,
)
_NEARLY = st.dictionaries(
    st.sampled_from([word.name for word in (*PROJECT_SETTINGS, *QOS_SETTINGS)]) | st.text(max_size=4),
    _VALUES,
    max_size=4,
)


@given(
    st.fixed_dictionaries(
        {}, optional={"projects": st.dictionaries(st.text(max_size=4), _NEARLY, max_size=3), "qos": _NEARLY | _VALUES}
    )
)
@QUICK
def test_any_values_are_quotas_or_a_sentence(values: dict[str, Any]) -> None:
    only_bad_config(yaml.safe_dump(values, allow_unicode=True).encode("utf-8", "replace"), "q.yaml")


#: Values that look like names, tables and comments to whoever does not read them as TOML does.
_TOML_VALUES = [
    "1", "1.5", "true", "2026-01-01", "'#'", '"\\"#["', '"""\n""\n[x]"""', "'''\n[x]\n'a''''", '"""\\"""="""', "[]",
    '[ 1, # ]\n "]",\n {x = "}"} ]', "[[\n],['''[''']]", "{}", "{ x = [\n{y = '}'}] }",
]  # fmt: skip


def write_toml(draw: Any, names: Iterator[str], header: list[str], level: int) -> list[str]:
    """Lines of a table with settings and tables in it, in any style; `names` come each once."""

    def key() -> str:
        name = next(names)
        return draw(st.sampled_from([name, f'"{name}"', f"'{name}'", f'"{name} =.#[\\"\\u00e9"', f"'{name}\"]'"]))

    def value(level: int) -> str:
        if level == 6 or draw(st.booleans()):
            return draw(st.sampled_from(_TOML_VALUES))
        pairs = [f"{key()} = {value(level + 1)}" for _ in range(draw(st.integers(0, 2)))]
        return "{" + " , ".join(pairs) + "}"

    lines = []
    for _ in range(draw(st.integers(0, 3))):
        dotted = " . ".join(key() for _ in range(draw(st.integers(1, 3))))
        lines.append(f"{dotted}\t= {value(level)}" + draw(st.sampled_from(["", " # [x]", "\n\n"])))
    for _ in range(draw(st.integers(0, 2)) if level < 3 else 0):
        inside = [*header, *(key() for _ in range(draw(st.integers(1, 2))))]
        lines.append(f" [ {' . '.join(inside)} ] # =")
        lines += write_toml(draw, names, inside, level + 1)
    return lines


@given(data=st.data())
@QUICK
def test_every_name_in_toml_has_its_line(data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = "\n".join(write_toml(data.draw, (f"k{number:04}" for number in range(10_000)), [], 0))
    parsed = tomllib.loads(text)

    def compare(table: TreeTable, values: dict[str, Any], depth: int) -> None:
        assert [one.name for one in table.entries] == list(values)
        for one in table.entries:
            if one.name.startswith("k"):
                assert one.line == text[: text.index(one.name[:5])].count("\n") + 1
            if isinstance(one.node, TreeTable):
                compare(one.node, values[one.name], depth + 1)
            else:
                assert depth == DEPTH or not isinstance(values[one.name], dict)

    compare(from_toml.parse(text.replace("\n", ending)), parsed, 1)


# --- the same form for editors, pages and the log -------------------------------------------------------------------


def accepts(word: QuotaSetting, value: str | float | bool | tuple[str, ...] | None) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        read_setting(word, TreeLeaf(Decimal(str(value)) if number else value))  # type: ignore[arg-type]
    except UnfitValue:
        return False
    return True


@pytest.mark.parametrize("table", ["projects", "qos"])
def test_the_schema_takes_what_the_reader_takes(table: str) -> None:
    form = quota_schema()
    check = jsonschema.Draft202012Validator(form)
    check.check_schema(form)
    values = [
        0, 1, -1, 1.5, 100, 101, 1_000_000, 1_000_001, -1_000_000, -1_000_001, True, False, None, "", "4", "unlimited",
        "30 min", "30min", "30 MIN", "1.5 h", "30", "-30 min", "30 minutes", "200 GPU-hours per week", "pause", "kill",
        "1 gpu hour per day", "0.5 GPU-hours per Month", "5 GPU-hours per year", "0.0005 GPU-hours per day", "5 GPU-h",
    ]  # fmt: skip
    for word in PROJECT_SETTINGS if table == "projects" else QOS_SETTINGS:
        if word.name in ("class_hours", "node_pools", "qos", "leads"):  # a table, and lists: see below
            continue
        assert any(accepts(word, value) for value in values)
        for value in values:
            entry = {"walltime": "1 h"} | {word.name: value} if table == "qos" else {word.name: value}
            assert check.is_valid({table: {"x": entry}}) == accepts(word, value), (word.name, value)


@pytest.mark.parametrize("name", ["quotas.toml", "quotas.yaml"])
def test_the_examples_fit_the_schema(name: str) -> None:
    text = (HERE / "examples" / name).read_text()
    jsonschema.validate(tomllib.loads(text) if name.endswith("toml") else yaml.safe_load(text), quota_schema())


@pytest.mark.parametrize(
    "values",
    [
        {"project": {}},
        {"projects": {"a": {"x": 1}}},
        {"projects": {"": {}}},
        {"qos": {"gold": {"priority": 1}}},
        {"qos": {"gold": None}},
        {"projects": {"a": {"class_hours": {"x": None}}}},
        {"projects": {"a": {"class_hours": {"x": {"days": ["Mon"]}}}}},
    ],
)
def test_the_schema_refuses_what_no_file_may_say(values: dict[str, Any]) -> None:
    assert not jsonschema.Draft202012Validator(quota_schema()).is_valid(values)
    with pytest.raises(BadConfig):
        parse_quotas(json.dumps(values).encode(), "q.yaml")


@pytest.mark.parametrize("word", CLASS_HOURS_SETTINGS, ids=lambda one: one.name)
def test_the_schema_takes_the_class_hours_that_the_reader_takes(word: QuotaSetting) -> None:
    check = jsonschema.Draft202012Validator(quota_schema())
    written = {one.name: tomllib.loads(f"x = {one.example}")["x"] for one in CLASS_HOURS_SETTINGS}
    values = [
        1, -1, True, None, "", "9:00", "10:30", "23:59", "24:00", "25:00", "Mon", ["Mon"], ["Mon", "Tue"], [],
        ["Monday"], ["Mon", "Mon"], "UTC", "2026-10-12", "12.10.2026",
    ]  # fmt: skip
    for value in values:
        is_read = accepts(word, tuple(value) if isinstance(value, list) else value)
        is_form = check.is_valid({"projects": {"x": {"class_hours": {"y": written | {word.name: value}}}}})
        if word.name != "time_zone" or not isinstance(value, str):  # which names there are, only the reader knows
            assert is_form == is_read, value
        assert is_form or not is_read


def test_the_example_of_class_hours_is_that_of_each_word() -> None:
    text = "[projects.x.class_hours.y]\n" + "\n".join(f"{one.name} = {one.example}" for one in CLASS_HOURS_SETTINGS)
    assert difference(Quotas(), toml(text)[0])[0].after == (
        "class_hours 'y' Mon, Wed 10:00-12:00 Europe/Berlin from 2026-10-12 to 2027-02-05, 8 GPUs"
    )


@pytest.mark.parametrize("value", [["interactive"], ["a", "b"], ["a", "a"], [], [""], "interactive", 1, True])
def test_the_schema_takes_the_lists_of_classes_that_the_reader_takes(value: Any) -> None:
    [word] = [one for one in PROJECT_SETTINGS if one.name == "qos"]
    is_form = jsonschema.Draft202012Validator(quota_schema()).is_valid({"projects": {"x": {"qos": value}}})
    assert is_form == accepts(word, tuple(value) if isinstance(value, list) else value)


def test_the_schema_takes_what_the_reader_takes_of_the_scheduler() -> None:
    check = jsonschema.Draft202012Validator(quota_schema())
    for word in SCHEDULER_SETTINGS:
        for value in (0, 1, 1.5, 1_000_000, 1_000_001, True, None, "", "30 min", "30", "unlimited"):
            assert check.is_valid({"scheduler": {word.name: value}}) == accepts(word, value), (word.name, value)
        written = tomllib.loads(f"x = {word.example}")["x"]
        assert accepts(word, written)
    assert not check.is_valid({"scheduler": {"patience": "1 h"}})


def test_the_example_of_each_word_can_be_written() -> None:
    values = [word for word in PROJECT_SETTINGS if word.name not in ("class_hours", "node_pools")]
    for table, words in (("projects", values), ("qos", QOS_SETTINGS)):
        text = f"[{table}.x]\n" + "\n".join(f"{word.name} = {word.example}" for word in words) + "\n[projects.science]"
        quotas, _ = toml(text)
        for word in words:
            if word.name == "qos":
                assert word.kind.show(quotas.projects[0].qos) == "'interactive', 'batch'"
                continue
            if word.name == "leads":
                assert word.kind.show(quotas.projects[0].leads) == "'ann'"
                continue
            model: Any = quotas.projects[0] if table == "projects" else quotas.qos[-1]
            shown = word.kind.show(getattr(model, word.field)).removesuffix(" GPUs").replace("'", '"')
            assert shown in (word.example, word.example.strip('"'))


# --- what changed ---------------------------------------------------------------------------------------------------


def test_a_change_says_what_it_was_and_what_it_is() -> None:
    before, _ = toml("[projects.physics]\nguaranteed = 4\n[projects.old]\nlimit = 2\nborrow = false\nguaranteed = 1")
    after, _ = toml(
        "[projects.new]\nparent = 'physics'\n[projects.physics]\nguaranteed = 6\nbudget = '1.5 GPU-hours per day'\n"
        "[qos.long]\nrunning_per_user = 'unlimited'\nwalltime = '150 min'\n[qos.night]\nwalltime = '1 d'"
    )
    changes = difference(before, after)
    assert changes[0] == QuotaChange(
        what="project", name="physics", field="guaranteed", before="4 GPUs", after="6 GPUs"
    )
    assert [str(one) for one in changes] == [
        "guaranteed of project 'physics': 4 GPUs -> 6 GPUs",
        "budget of project 'physics': unlimited -> 1.5 GPU-hours per day",
        "project 'old' removed, had guaranteed 1 GPU, limit 2 GPUs, borrow false",
        "project 'new' added, with parent 'physics'",
        "walltime of qos 'long': 7 d -> 150 min",
        "running_per_user of qos 'long': 1 -> unlimited",
        "qos 'night' added, with walltime 1 d",
    ]


def test_the_order_of_a_file_is_no_change() -> None:
    one, _ = toml("[projects.a]\nlimit = 1\n[projects.b]\nlimit = 2")
    other, _ = toml("[projects.b]\nlimit = 2.0\n[projects.a]\nlimit = 1.000")
    assert difference(one, other) == []
    added = difference(Quotas(), toml("[projects.a]")[0])
    assert [str(change) for change in added] == ["project 'a' added, with nothing set"]


@given(st.integers(0, 10**12), st.integers(0, 10**12))
@QUICK
def test_two_values_never_look_alike_in_a_change(one: int, other: int) -> None:
    for kind in (GpuAmount(), Duration(0, 10**12), Factor()):
        assert (kind.show(one) == kind.show(other)) == (one == other)
    assert (GpuHours().show(Budget(one, "day")) == GpuHours().show(Budget(other, "day"))) == (one == other)


# --- the command ----------------------------------------------------------------------------------------------------


def bulletin(*words: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "gpu_worker.cli", "quota", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=HERE)
    return done.returncode, done.stdout, done.stderr


def test_the_command_says_ok_or_every_error(tmp_path: Path) -> None:
    path = tmp_path / "q.toml"
    path.write_text("[projects.a]\nguarantee = 4\nlimit = -1\n")
    code, out, err = bulletin("check", str(path))
    assert (code, out) == (1, "")
    assert [line.removeprefix(f"{path}:")[:3] for line in err.splitlines()] == ["2: ", "3: "]
    path.write_text("[projects.a]\nguaranteed = 4\n")
    assert bulletin("check", str(path)) == (0, "ok: 1 project, 4 classes of service\n", "")
    code, out, err = bulletin("check", "--gpus=3", str(path))
    assert (code, out) == (0, "ok: 1 project, 4 classes of service\n")
    assert err.startswith(f"{path}:2: warning: 4 GPUs are guaranteed, and the pool has 3 GPUs.")


@pytest.mark.parametrize("words", [("show", "q.toml"), ("chekc", "q.toml"), ("check", "a.toml", "b.toml")])
def test_a_command_that_is_not_understood_shows_its_form(words: tuple[str, ...]) -> None:
    code, out, err = bulletin(*words)
    assert (code, out) == (2, "")
    assert "usage: bulletin quota [show]" in err
    assert "bulletin quota check FILE [--gpus=N]" in err
