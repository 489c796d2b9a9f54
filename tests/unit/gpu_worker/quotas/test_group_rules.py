"""Rules for groups: what the file may say of them, and which projects come of which groups."""

import random
import tomllib
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from bulletin.errors import BadConfig
from bulletin.ids import ProjectId
from gpu_worker.quotas import Quotas, difference, parse_quotas
from gpu_worker.quotas.group_rule_checks import unused_rules
from gpu_worker.quotas.group_rule_settings import GROUP_RULE_SETTINGS, NEVER_BY_RULE
from gpu_worker.quotas.group_words import describe_group
from gpu_worker.quotas.quota_settings import PROJECT_SETTINGS
from gpu_worker.quotas.schema import quota_schema
from gpu_worker.quotas.value_kinds import QuotaSetting
from gpu_worker.scheduler.policy.group_rules import MOST_UNSEEN, GroupRule, HubGroup, make_projects, matches
from gpu_worker.scheduler.policy.projects import MOST_LEVELS, Budget, Project, check_projects, guarantees

HOUR_MS = 3_600_000
OF_GROUPS = [one for one in GROUP_RULE_SETTINGS if one not in PROJECT_SETTINGS and one.name != "parent"]
TEXT = """
[projects.teaching]
guaranteed = 4
limit = 8
[projects.lab]
[projects.course-known]
limit = 5
[group_rules.courses]
groups = ["course-*", "seminar"]
parent = "teaching"
limit = 2
user_limit = 1
walltime = "4 h"
qos = ["interactive", "batch"]
budget = "20 GPU-hours per week"
borrow = false
[group_rules.labs]
groups = ["lab*"]
nest_by = "/"
weight = 3
[group_rules.by_property]
properties = ["kind=course", "term=2026"]
parent = "teaching"
parent_property = "department"
limit = 3
"""


def quotas(text: str = TEXT) -> Quotas:
    return parse_quotas(text.encode(), "quotas.toml")[0]


def made(text: str, *groups: str | HubGroup) -> dict[str, Project]:
    read = quotas(text)
    known = [one if isinstance(one, HubGroup) else HubGroup(one) for one in groups]
    named = {one.id for one in read.projects}
    return {one.id: one for one in read.settings_for(known).projects if one.id not in named}


def refused(text: str) -> str:
    with pytest.raises(BadConfig) as error:
        quotas(text)
    return str(error.value)


def warned(text: str) -> list[str]:
    return [one.sentence for one in parse_quotas(text.encode(), "quotas.toml")[1]]


@pytest.mark.parametrize(
    ("group", "rule", "parent"),
    [
        ("course-ml", "courses", "teaching"),
        ("course-", "courses", "teaching"),
        ("seminar", "courses", "teaching"),
        ("seminar-2", None, None),
        ("Course-ml", None, None),
        ("a-course-ml", None, None),
        ("laboratory", "labs", None),
        ("lab/phd", "labs", "lab"),
        ("lab/phd/ann", "labs", "lab/phd"),
        ("lab2/phd", "labs", "lab2"),
        ("lab//x", "labs", "lab/"),
        ("", None, None),
    ],
)
def test_the_first_rule_that_fits_says_what_a_group_is(group: str, rule: str | None, parent: str | None) -> None:
    project = made(TEXT, group).get(group)
    assert (project.rule if project else None, project.parent if project else None) == (rule, parent)


def test_a_project_has_what_its_rule_says_and_no_guarantee() -> None:
    course = made(TEXT, "course-ml")["course-ml"]
    assert course == Project(
        id=ProjectId("course-ml"),
        parent=ProjectId("teaching"),
        rule="courses",
        limit_milli=2000,
        user_limit_milli=1000,
        walltime_ms=4 * HOUR_MS,
        qos=("interactive", "batch"),
        budget=Budget(20 * HOUR_MS, "week"),
        can_borrow=False,
    )


def test_a_group_that_the_file_names_is_what_the_file_says() -> None:
    assert made(TEXT, "course-known", "lab", "teaching") == {}
    assert made(TEXT.replace("[projects.course-known]\nlimit = 5\n", ""), "course-known")["course-known"].rule


def test_what_a_group_is_in_is_there_by_its_rule_whether_anybody_was_seen_in_it() -> None:
    found = made(TEXT, "lab2/phd/ann")
    parents = {name: one.parent for name, one in found.items()}
    assert parents == {"lab2": None, "lab2/phd": "lab2", "lab2/phd/ann": "lab2/phd"}
    assert {one.rule for one in found.values()} == {"labs"}
    bounded = TEXT.replace('groups = ["lab*"]', 'groups = ["lab*"]\nparent = "teaching"')
    assert made(bounded, "lab/phd")["lab/phd"].parent == "teaching", "lab is elsewhere"
    assert made(bounded, "lab2/phd")["lab2/phd"].parent == "lab2"
    elsewhere = TEXT.replace('groups = ["lab*"]', 'groups = ["*/*"]\nparent = "teaching"')
    assert made(elsewhere, "nobody/ann")["nobody/ann"].parent == "teaching"


def test_names_with_many_marks_make_few_projects_where_nobody_was_seen() -> None:
    levels = ["lab" + "/x" * level for level in range(MOST_LEVELS)]
    found = made(TEXT.replace("[projects.lab]\n", ""), *(f"lab{number}{'/x' * 14}" for number in range(50)))
    assert len(found) == 50 * (1 + MOST_UNSEEN), "each group, and the first levels of what it is in"
    deep = made(TEXT, levels[-1])
    assert sorted(deep, key=len) == [levels[1], levels[2], levels[-1]], "the file names the first one"
    assert deep[levels[-1]].parent == levels[2]
    seen = made(TEXT, levels[-1], levels[6])
    assert (seen[levels[-1]].parent, seen[levels[6]].parent) == (levels[6], levels[2])
    named = made(TEXT + f'[projects."{levels[6]}"]\nlimit = 2\n', levels[-1])
    assert named[levels[-1]].parent == levels[6]


def test_a_rule_by_properties_is_for_groups_that_have_all_of_them() -> None:
    course = (("kind", "course"), ("term", "2026"))
    assert made(TEXT, HubGroup("ml", course))["ml"].rule == "by_property"
    assert made(TEXT, HubGroup("ml", course[:1])) == {}
    assert made(TEXT, HubGroup("ml")) == {}
    assert made(TEXT, HubGroup("course-ml", course))["course-ml"].rule == "courses", "the first one that fits"
    with_more = HubGroup("ml", (*course, ("department", "lab")))
    inside = TEXT.replace("[projects.lab]", '[projects.lab]\nparent = "teaching"')
    assert made(inside, with_more)["ml"].parent == "lab"
    assert made(TEXT, with_more)["ml"].parent == "teaching", "no group leaves what bounds all of its rule"
    anywhere = TEXT.replace('term=2026"]\nparent = "teaching"', 'term=2026"]')
    assert made(anywhere, with_more)["ml"].parent == "lab"
    strange = HubGroup("ml", (*course, ("department", "course-other")))
    assert made(TEXT, strange)["ml"].parent == "teaching", "only what the file names"
    assert made(TEXT, HubGroup("ml", (*course, ("department", "ml"))))["ml"].parent == "teaching"


@pytest.mark.parametrize("parent", ["", 'parent = "cs101"\n'], ids=["anywhere", "inside"])
@pytest.mark.parametrize("way", ['groups = ["*"]\nnest_by = "-"', 'groups = ["*"]\nparent_property = "department"'])
def test_no_group_is_in_what_is_reserved_for_users(way: str, parent: str) -> None:
    text = f"""
[projects.cs101]
guaranteed = 4
[reservations.exam]
project = "cs101"
users = ["ann"]
gpus = 4
from = "2026-12-01T20:00"
until = "2026-12-01T22:00"
time_zone = "Europe/Berlin"
[group_rules.x]
{way}
{parent}"""
    group = HubGroup("exam in cs101-x", (("department", "exam in cs101"),))
    assert made(text, group)["exam in cs101-x"].parent == ("cs101" if parent else None)


@pytest.mark.parametrize("setting", [*NEVER_BY_RULE], ids=str)
def test_no_rule_gives_a_guarantee_or_keeps_anything_from_others(setting: str) -> None:
    example = next(one.example for one in PROJECT_SETTINGS if one.name == setting)
    line = f"{setting} = {example}" if setting != "class_hours" else "[group_rules.x.class_hours.a]\nguaranteed = 1"
    said = refused(f'[node_pools.h100]\ngpu = "H100"\n[group_rules.x]\ngroups = ["*"]\n{line}\n')
    assert said.startswith("quotas.toml:5: No rule gives " + setting)
    assert said.count("\n") == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("limit = 1", "group_rules.x does not say for which groups it is. Write groups"),
        ('groups = ["a*"]\nparent = "lap"\n[projects.lab]', "'x' are in 'lap', which is not there. Did you mean lab?"),
        ('groups = ["a*"]\nnest_by = "x"', "group_rules.x.nest_by is 'x'. Write one of \"/\""),
        ("groups = []", "Write a list of 1 to 50 names"),
        ('groups = ["a ", "b"]', "Write a list of 1 to 50 names"),
        ('properties = ["=b"]', "Write a list of properties of hub groups with their values"),
        ('properties = ["b"]', "Write a list of properties of hub groups with their values"),
        ('groups = ["a*"]\nqos = ["nightly"]', "'nightly', which is no class of service here"),
        ('groups = ["a*"]\nleads = []', "group_rules.x.leads is an empty list."),
        ('groups = ["a*"]\nlimits = 1', "Did you mean limit?"),
    ],
)
def test_a_rule_that_cannot_be_is_an_error_in_its_line(text: str, sentence: str) -> None:
    assert sentence in refused(f"[group_rules.x]\n{text}\n")


def test_rules_that_do_nothing_are_warned_of() -> None:
    first = '[group_rules.x]\ngroups = ["a*"]\n[group_rules.y]\n'
    assert "Every group that 'y' is for has what 'x' says" in warned(first + 'groups = ["ab*c", "a"]')[0]
    assert warned(first + 'groups = ["a*", "b"]') == []
    assert warned(first.replace('["a*"]', '["a*"]\nproperties = ["k=v"]') + 'groups = ["ab"]') == []
    assert "that the file names" in warned('[projects.a]\nlimit = 1\n[group_rules.x]\ngroups = ["a"]')[0]
    assert "their cells never run" in warned('[group_rules.x]\ngroups = ["a*"]\nborrow = false')[0]
    inside = '[projects.a]\nlimit = 1\n[group_rules.x]\ngroups = ["*"]\nparent = "a"\nlimit = 2'
    assert "is in 'a', whose limit is 1 GPU" in warned(inside)[0]


def test_a_rule_below_the_last_level_is_an_error() -> None:
    levels = "".join(f'[projects.p{level}]\nweight = 2\nparent = "p{level - 1}"\n' for level in range(1, MOST_LEVELS))
    text = f"[projects.p0]\nweight = 2\n{levels}[group_rules.x]\ngroups = ['*']\n"
    assert "nested more than 16 deep" in refused(f'{text}parent = "p{MOST_LEVELS - 1}"\n')
    assert warned(f'{text}parent = "p{MOST_LEVELS - 2}"\n') == []


def test_changes_of_rules_and_of_their_order_are_told() -> None:
    def told(before: str, after: str) -> list[str]:
        return [str(one) for one in difference(quotas(before), quotas(after))]

    one, two = '[group_rules.x]\ngroups = ["a*"]\n', '[group_rules.y]\ngroups = ["b*"]\nlimit = 2\n'
    assert told("", two) == ["group rule 'y' added, with groups 'b*', limit 2 GPUs"]
    assert told(one, one + "limit = 3") == ["limit of group rule 'x': unlimited -> 3 GPUs"]
    assert told(one + two, two + one) == ["order of the group rules: x, y -> y, x"]
    assert told(two, "") == ["group rule 'y' removed, had groups 'b*', limit 2 GPUs"]


def test_the_schema_takes_what_the_reader_takes() -> None:
    check = jsonschema.Draft202012Validator(quota_schema())
    assert check.is_valid(tomllib.loads(TEXT))
    for setting in GROUP_RULE_SETTINGS:
        for rule in ({setting.name: tomllib.loads(f"x = {setting.example}")["x"]}, {"groups": ["a"], "guaranteed": 1}):
            has_groups = rule.keys() & {"groups", "properties"} and "guaranteed" not in rule
            assert check.is_valid({"group_rules": {"x": rule}}) == bool(has_groups)


@pytest.mark.parametrize("word", OF_GROUPS, ids=lambda one: one.name)
def test_the_schema_takes_the_values_that_the_reader_takes(word: QuotaSetting) -> None:
    check = jsonschema.Draft202012Validator(quota_schema())
    values: list[Any] = [1, True, None, "", "a", "/", "=", [], [""], ["a"], ["a=b"], ["=b"], ["a", "a"], "::"]
    for value in values:
        written = f"{word.name} = {value!r}".replace("True", "true") if value is not None else ""
        base = "" if word.name == "groups" else 'groups = ["a"]\n'
        try:
            quotas(f"[group_rules.x]\n{base}{written}\n".replace("'", '"'))
            is_read = value is not None or bool(base)
        except BadConfig:
            is_read = False
        rule = ({"groups": ["a"]} if base else {}) | ({} if value is None else {word.name: value})
        assert check.is_valid({"group_rules": {"x": rule}}) == is_read, value


def test_who_is_in_no_group_is_in_no_rule() -> None:
    assert made('[group_rules.x]\ngroups = ["*"]\nnest_by = "/"', "default", "default/x").keys() == {"default/x"}


def test_what_a_group_has_in_a_sentence() -> None:
    read = quotas(TEXT)
    assert describe_group(read, "lab2/phd") == (
        "'lab2/phd': by the rule 'labs', in 'lab2'. It has weight 3, and no guarantee."
    )
    assert describe_group(read, "lab") == "'lab': the file names it."
    assert describe_group(read, "x") == "'x': no rule is for it. It has no guarantee, no limit, and weight 1."


def test_the_same_in_yaml() -> None:
    text = "group_rules:\n  x:\n    groups: [course-*]\n    limit: 2\n"
    read, _ = parse_quotas(text.encode(), "quotas.yaml")
    assert read.group_rules == quotas('[group_rules.x]\ngroups = ["course-*"]\nlimit = 2').group_rules


def test_rules_that_are_for_no_group_of_the_hub_are_found() -> None:
    read = quotas(TEXT)
    found = dict(unused_rules(read.group_rules, read.projects, ["course-known", "staff"]))
    assert {rule.id: names for rule, names in found.items()} == {"courses": ("course-known",), "labs": ()}
    assert list(unused_rules(read.group_rules, read.projects, ["course-a", "lab/x"])) == []


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="abc", max_size=8))
def test_a_star_stands_for_any_letters(pattern: str, name: str) -> None:
    def slowly(pattern: str, name: str) -> bool:
        if not pattern:
            return not name
        if pattern[0] == "*":
            return any(slowly(pattern[1:], name[at:]) for at in range(len(name) + 1))
        return name[:1] == pattern[0] and slowly(pattern[1:], name[1:])

    assert matches(pattern, name) == slowly(pattern, name)


_PATTERNS = st.lists(st.text(alphabet="ab*", min_size=1, max_size=5), min_size=1, max_size=3)


@given(_PATTERNS, _PATTERNS, st.text(alphabet="abc", max_size=6))
def test_a_rule_that_covers_another_fits_all_that_fits_that(wide: list[str], narrow: list[str], name: str) -> None:
    first, second = (GroupRule(id=ProjectId("r"), groups=tuple(one)) for one in (wide, narrow))
    if first.covers(second) and second.fits(HubGroup(name)):
        assert first.fits(HubGroup(name))


_NAMES = st.text(alphabet="ab/.-_: \u200b\n\u00e9*", max_size=40)
_RULES = st.builds(
    lambda groups, mark, parent, told: GroupRule(
        id=ProjectId("rule"), groups=tuple(groups), nest_by=mark, parent=parent, parent_property=told
    ),
    st.lists(st.sampled_from(["*", "a*", "*/*", "b*.*", "*b"]), max_size=2),
    st.sampled_from(["", "/", ".", "-", "_", ":"]),
    st.sampled_from([None, ProjectId("top"), ProjectId("a")]),
    st.sampled_from(["", "in"]),
)


@given(
    st.lists(_RULES, max_size=4),
    st.lists(st.builds(lambda name, told: HubGroup(name, (("in", told),)), _NAMES, _NAMES), max_size=8),
    st.randoms(use_true_random=False),
)
def test_whatever_groups_are_called_the_projects_are_a_tree_and_promise_nothing(
    rules: list[GroupRule], groups: list[HubGroup], order: random.Random
) -> None:
    named = [
        Project(id=ProjectId("top"), guaranteed_milli=2000),
        Project(id=ProjectId("a"), parent=ProjectId("top")),
        *(Project(id=ProjectId("a" + "/b" * n), parent=ProjectId("a" + "/b" * (n - 1))) for n in range(1, 13)),
    ]
    groups = list({one.name: one for one in groups}.values())
    found = make_projects(rules, named, groups)
    assert not check_projects([*named, *found])
    assert sum(guarantees([*named, *found]).values()) == sum(guarantees(named).values())
    parents = {one.id: one.parent for one in (*named, *found)}
    told = {one.id: HubGroup(one.id) for one in found} | {ProjectId(one.name): one for one in groups}
    for at in list(parents):
        way = [at]
        while (above := parents[way[-1]]) is not None:
            way.append(above)
            assert len(way) <= MOST_LEVELS
        bound = next((rule.parent for rule in rules if at in {one.id for one in found} and rule.fits(told[at])), None)
        assert bound is None or bound in way
    shuffled = list(groups)
    order.shuffle(shuffled)
    assert make_projects(rules, named, shuffled) == found
    assert len(found) <= (1 + MOST_UNSEEN) * len(groups)


def test_a_name_of_marks_alone_is_no_burden() -> None:
    rule = GroupRule(id=ProjectId("r"), groups=("*",), nest_by="/")
    found = make_projects([rule], [], [HubGroup("/" * 100_000), HubGroup("a/" * 50_000)])
    assert len(found) <= 2 * (1 + MOST_UNSEEN)
