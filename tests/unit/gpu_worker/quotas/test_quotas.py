"""The quota file: what it means."""

import json
from datetime import date

import msgspec
import pytest

from bulletin.ids import ProjectId
from gpu_worker.quotas import Quotas, difference, read_quotas
from gpu_worker.quotas.quota_settings import PROJECT_SETTINGS, QOS_SETTINGS
from gpu_worker.quotas.reservation_settings import RESERVATION_SETTINGS
from gpu_worker.quotas.zones import find_zone
from gpu_worker.scheduler.policy.class_hours import ClassHours, Zone
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, Budget, Preemption, Project, QoS, SchedulerSettings
from tests.unit.gpu_worker.quotas.quota_texts import HERE, LECTURE, toml, yml


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
