"""A quota file changed as its text: the change is made, and every other line is as it was."""

import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from bulletin.errors import BadConfig
from gpu_worker.quotas import parse_quotas
from gpu_worker.quotas.edits import CannotEdit, QuotaEdit, edit_text, parse_path, parse_value, settings_in

EXAMPLES = Path(__file__).parents[4] / "examples"
TOML = """\
# The quotas of the faculty.

[projects.lab]              # asked for by Eve
limit = 3   # three
# weight = 2

# The club may stay until March.
[projects.club]
parent = "lab"
limit = 2

# The course: see the exam rules.
[projects.course]
limit = 1
node_pools = { h100 = 1 }

[node_pools.h100]
gpu = "H100"
"""
YAML = """\
projects:
    lab:   # asked for by Eve
        limit:   3   # three
        qos: [interactive,  batch]
    # The club may stay until March.
    club: {parent: lab, limit: 2}

    # The course: see the exam rules.
    course:
        limit: 1
        qos:
        - interactive
        - "batch"
"""


def edited(text: str, words: str, value: object, suffix: str = ".toml") -> str:
    return edit_text(text.encode(), suffix, [QuotaEdit(parse_path(words), value)]).decode()  # type: ignore[arg-type]


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came, without regard to where."""
    old, new = before.split("\n"), after.split("\n")
    gone = [line for line in old if line not in new]
    return gone, [line for line in new if line not in old]


def test_a_value_is_written_over_the_old_one_and_its_comment_stays() -> None:
    assert edited(TOML, "projects.lab.limit", 8) == TOML.replace("limit = 3   # three", "limit = 8   # three")
    assert edited(YAML, "projects.lab.limit", 8, ".yaml") == YAML.replace("limit:   3 ", "limit:   8 ")
    assert edited(YAML, "projects.club.limit", 4, ".yaml") == YAML.replace("limit: 2}", "limit: 4}")


def test_a_new_setting_stands_behind_the_last_of_its_table() -> None:
    after = edited(TOML, "projects.lab.walltime", "4 h")
    assert after == TOML.replace("# three\n", '# three\nwalltime = "4 h"\n')
    after = edited(YAML, "projects.lab.walltime", "4 h", ".yaml")
    assert after == YAML.replace("batch]\n", "batch]\n        walltime: 4 h\n")
    assert "course:\n        limit: 1\n" in edited(YAML, "projects.course.weight", 2, ".yaml")


def test_a_new_project_stands_behind_the_others_with_a_line_between() -> None:
    after = edited(TOML, "projects.new.limit", 1)
    assert "node_pools = { h100 = 1 }\n\n[projects.new]\nlimit = 1\n\n[node_pools.h100]" in after
    after = edited(YAML, "projects.new.limit", 1, ".yaml")
    assert after.endswith('        - "batch"\n    new:\n      limit: 1\n')


def test_a_project_that_goes_takes_its_own_comment_along_and_leaves_that_of_the_next() -> None:
    after = edited(TOML, "projects.club", None)
    assert changed(TOML, after) == (
        ["# The club may stay until March.", "[projects.club]", 'parent = "lab"', "limit = 2"],
        [],
    )
    assert "# weight = 2\n\n# The course: see the exam rules.\n[projects.course]" in after
    after = edited(YAML, "projects.club", None, ".yaml")
    assert changed(YAML, after)[0] == ["    # The club may stay until March.", "    club: {parent: lab, limit: 2}"]


def test_names_in_braces_come_and_go() -> None:
    after = edited(TOML, "projects.course.node_pools.a100", Decimal("0.5"))
    assert "{ h100 = 1, a100 = 0.5 }" in after
    assert "{ h100 = 1 }" in edited(after, "projects.course.node_pools.a100", None)
    assert "{ a100 = 0.5 }" in edited(after, "projects.course.node_pools.h100", None)
    assert "club: {limit: 2}" in edited(YAML, "projects.club.parent", None, ".yaml")
    assert "club: {parent: lab, limit: 2, weight: 3}" in edited(YAML, "projects.club.weight", 3, ".yaml")


def test_lists_keep_their_form() -> None:
    after = edited(YAML, "projects.course.qos", ("batch", "long"), ".yaml")
    assert "        qos:\n        - batch\n        - long\n" in after
    assert "qos: [long]\n" in edited(YAML, "projects.lab.qos", ("long",), ".yaml")


def test_an_empty_file_and_one_with_comments_alone_take_a_setting() -> None:
    assert edited("", "projects.lab.limit", 3) == "[projects.lab]\nlimit = 3\n"
    assert edited("# none yet\n", "projects.lab.limit", 3, ".yml") == "# none yet\nprojects:\n  lab:\n    limit: 3\n"
    assert edited("projects:\n", "projects.lab.limit", 3, ".yml") == "projects:\n  lab:\n    limit: 3\n"


def test_dotted_names_stay_dotted() -> None:
    text = "[projects]\nlab.limit = 3  # a\nclub.limit = 2\n"
    assert edited(text, "projects.lab.weight", 2) == text.replace("# a\n", "# a\nlab.weight = 2\n")
    assert edited(text, "projects.lab", None) == "[projects]\nclub.limit = 2\n"


@pytest.mark.parametrize(
    "opened",
    [
        "[projects.cs.class_hours.lecture]\n",
        "[projects.cs]\nclass_hours.lecture.",
        "[projects.cs.class_hours]\nlecture.",
        "projects.cs.class_hours.lecture.",
        "[projects]\ncs.class_hours.lecture.",
    ],
)
@pytest.mark.parametrize("words", ["projects.cs.limit", "projects.cs.class_hours.lab.guaranteed"])
def test_a_table_that_is_only_known_by_what_is_in_it_takes_a_setting(opened: str, words: str) -> None:
    stem = "" if opened.endswith("\n") else opened.rpartition("\n")[2]
    hours = ['days = ["Mon"]', 'from = "10:00"', 'until = "12:00"', "guaranteed = 2", 'time_zone = "Europe/Berlin"']
    text = f"# of the faculty\n{opened.removesuffix(stem)}" + "".join(f"{stem}{line}\n" for line in hours)
    after = edited(text, words, Decimal(3))
    gone, _ = changed(text, after)
    assert gone == []
    found: object = tomllib.loads(after)
    for name in words.split("."):
        assert isinstance(found, dict)
        found = found[name]
    assert found == 3


def test_line_ends_and_the_mark_of_an_editor_stay() -> None:
    content = ("\ufeff" + TOML).replace("\n", "\r\n").encode()
    after = edit_text(content, ".toml", [QuotaEdit(("projects", "lab", "limit"), 8)])
    assert after == content.replace(b"limit = 3 ", b"limit = 8 ")
    with pytest.raises(CannotEdit, match="end as on Windows"):
        edit_text(b"a = 1\r\nb = 2\n", ".toml", [QuotaEdit(("projects", "lab", "limit"), 8)])


def test_what_is_not_there_cannot_be_taken_out_and_no_table_is_written_over() -> None:
    for words, value, said in (
        ("projects.nobody", None, "nothing to take out"),
        ("projects.nobody.limit", None, "is not in the file"),
        ("projects.lab", 3, "is a table"),
        ("projects.lab.limit.x", 3, "is not in the file"),
        ("projects", 3, "is no setting"),
    ):
        with pytest.raises(CannotEdit, match=said):
            edited(TOML, words, value)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".toml", "[prices]\n\n[projects.lab]\n\n[projects.ml]\nlimit = 2\n\n[projects.ml.node_pools]\n"),
        (".yaml", "prices:\nprojects:\n  lab:\n  ml:\n    limit: 2\n    node_pools: {}\n"),
    ],
)
def test_a_project_that_is_only_named_is_listed_and_can_be_taken_out(suffix: str, text: str) -> None:
    listed = settings_in(text.encode(), suffix)
    assert [(one.path, one.value) for one in listed] == [
        (("projects", "lab"), None),
        (("projects", "ml", "limit"), 2),
        (("projects", "ml", "node_pools"), None),
    ]
    after = edit_text(text.encode(), suffix, [QuotaEdit(("projects", "lab"), None)])
    assert [one.path[1] for one in settings_in(after, suffix)] == ["ml", "ml"]


def test_an_alias_is_not_changed_behind_the_back_of_who_else_uses_it() -> None:
    text = "projects:\n  a: &x\n    limit: 1\n  b: *x\n"
    with pytest.raises(CannotEdit, match="by hand"):
        edited(text, "projects.b.limit", 2, ".yaml")
    with pytest.raises(CannotEdit, match="by hand"):
        edited(text, "projects.a.limit", 2, ".yaml")


@pytest.mark.parametrize("suffix", [".toml", ".yaml"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_whatever_is_changed_the_rest_keeps_every_line(suffix: str, data: st.DataObject) -> None:
    text = (EXAMPLES / f"quotas{suffix}").read_text()
    projects = ["science", "physics", "biology", "deep-learning-course", "default", "new one", "x.y", "näh"]
    numbers = st.one_of(st.integers(1, 9), st.decimals(1, 9, places=2))
    value = {
        "limit": numbers,
        "weight": st.integers(1, 9),
        "walltime": st.sampled_from(["4 h", "30 min", "90 s"]),
        "qos": st.lists(st.sampled_from(["interactive", "batch", "long"]), min_size=1, unique=True).map(tuple),
        "borrow": st.booleans(),
        "budget": st.sampled_from(["unlimited", "200 GPU-hours per week"]),
    }
    edits = []
    for _ in range(data.draw(st.integers(1, 4))):
        project, name = data.draw(st.sampled_from(projects)), data.draw(st.sampled_from(sorted(value)))
        edits.append(QuotaEdit(("projects", project, name), data.draw(value[name])))
    after = edit_text(text.encode(), suffix, edits).decode()
    gone, _ = changed(text, after)
    touched = {edit.path[-1] for edit in edits}
    assert all(line.split("=")[0].split(":")[0].strip() in touched for line in gone)
    comments = [line.partition("# ")[2] for line in text.split("\n") if "# " in line]
    assert [line.partition("# ")[2] for line in after.split("\n") if "# " in line] == comments
    again = edit_text(after.encode(), suffix, edits).decode()
    assert again == after
    fresh = {edit.path[1] for edit in edits} - set(projects[:5])
    for project in fresh:
        after = edit_text(after.encode(), suffix, [QuotaEdit(("projects", project), None)]).decode()
    assert not fresh & {one.id for one in parse_or_none(after, suffix)}


def parse_or_none(text: str, suffix: str) -> tuple:
    try:
        return parse_quotas(text.encode(), f"q{suffix}")[0].projects
    except BadConfig:
        return ()


def test_names_and_values_are_read_as_people_type_them() -> None:
    assert parse_path('projects."x.y".limit') == ("projects", "x.y", "limit")
    assert parse_path("prices.H100") == ("prices", "H100")
    for words in ("", "projects.", "a b", "x = 1", "a.b.c.d.e.f", "a\nb"):
        with pytest.raises(BadConfig, match="is no setting"):
            parse_path(words)
    values = ["8", "1.5", "true", '["a", "b"]', "30 min", '"30 min"', "unlimited", "[1]", "{}", "2026-12-01"]
    assert [parse_value(one) for one in values] == [
        8,
        Decimal("1.5"),
        True,
        ("a", "b"),
        "30 min",
        "30 min",
        "unlimited",
        "[1]",
        "{}",
        "2026-12-01",
    ]
