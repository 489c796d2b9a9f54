"""What has no effect in a quota file, or cannot be kept, is a warning."""

from datetime import UTC, datetime

import pytest

from gpu_worker.quotas import parse_quotas
from tests.unit.gpu_worker.quotas.quota_texts import LECTURE, toml


def test_more_gpus_for_a_cell_than_the_project_has_is_a_warning() -> None:
    _, [warning] = toml("[projects.a]\nlimit = 2\ngpus_per_cell = 4")
    assert str(warning) == (
        "q.toml:3: warning: 'a' lets a cell have 4 GPUs, and has a limit of 2 GPUs itself: gpus_per_cell does nothing. "
        "Lower it, or leave it out."
    )


def test_a_back_off_above_the_longest_one_is_a_warning() -> None:
    _, [warning] = toml('[scheduler]\nback_off = "2 h"')
    assert str(warning) == (
        "q.toml:2: warning: longest_back_off is 10 min, and back_off is 2 h: a project never stands behind others for "
        "longer than 10 min. Raise longest_back_off, or lower back_off."
    )


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


def test_class_hours_of_a_term_that_is_over_are_a_warning() -> None:
    text = LECTURE.replace("= 8", "= 2") + '\nlast_day = "2026-02-05"\n'
    during_ms, after_ms = (int(datetime(2026, month, 10, tzinfo=UTC).timestamp() * 1000) for month in (1, 3))
    assert parse_quotas(text.encode(), "q.toml", 4000, during_ms)[1] == []
    _, [warning] = parse_quotas(text.encode(), "q.toml", 4000, after_ms)
    assert str(warning) == (
        "q.toml:2: warning: 'cs101' has no class hours 'lecture' any more: their last_day is over. Write the next "
        "term's first_day and last_day, or leave them out."
    )


def test_a_static_quota_for_class_hours_alone_is_no_reason_for_a_warning() -> None:
    assert toml("[projects.cs101]\nborrow = false\nlending_limit = 3" + LECTURE)[1] == []


def test_no_warning_without_a_reason() -> None:
    text = "[projects.a]\n[projects.b]\nparent = 'a'\nguaranteed = 2\nlending_limit = 1\nborrow = false\nlimit = 2"
    assert toml(text, capacity_milli=2000)[1] == []
    text = "[projects.a]\nlimit = 2\nuser_limit = 2\n[projects.b]\nparent = 'a'\nlimit = 2\nborrow = false"
    assert toml(text)[1] == []
