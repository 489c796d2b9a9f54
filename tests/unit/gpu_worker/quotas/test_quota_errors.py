"""What is said of a quota file that is wrong, with file and line."""

import pytest

from bulletin.errors import BadConfig
from gpu_worker.quotas import parse_quotas
from gpu_worker.quotas.findings import MOST_ERRORS
from tests.unit.gpu_worker.quotas.quota_texts import LECTURE, said, toml


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
    (LECTURE.replace('"Wed", "Mon"', '"Wednesday"'), 3, "is the list ['Wednesday']. Write a list of days, each once"),
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
    ("projects:\n  - a\n  - b", 1, "projects is the list ['a', 'b']"),
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
    ("projects:\n  a:\n    class_hours:\n      - x", 3, "is the list ['x']. Write its settings below it"),
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
