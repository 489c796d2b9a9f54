"""The schema of the quota file takes what the reader takes."""

import json
import tomllib
from typing import Any

import jsonschema
import pytest
import yaml

from bulletin.errors import BadConfig
from gpu_worker.quotas import Quotas, difference, parse_quotas
from gpu_worker.quotas.class_hours_settings import CLASS_HOURS_SETTINGS
from gpu_worker.quotas.quota_settings import PROJECT_SETTINGS, QOS_SETTINGS, SCHEDULER_SETTINGS
from gpu_worker.quotas.reservation_settings import RESERVATION_SETTINGS
from gpu_worker.quotas.schema import quota_schema
from gpu_worker.quotas.value_kinds import QuotaSetting
from tests.unit.gpu_worker.quotas.quota_texts import HERE, accepts, toml


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


@pytest.mark.parametrize("word", [*PROJECT_SETTINGS, *QOS_SETTINGS, *SCHEDULER_SETTINGS, *RESERVATION_SETTINGS])
def test_an_example_of_a_setting_is_a_value_of_it(word: QuotaSetting) -> None:
    form = quota_schema()
    tables = [*form["$defs"].values(), form["properties"]["scheduler"]]
    found = [one["properties"][word.name] for one in tables if word.name in one["properties"]]
    for one in found:
        for example in one.get("examples", ()):
            jsonschema.validate({"at": example}, {"$defs": form["$defs"], "properties": {"at": one}})
    assert any("examples" in one for one in found) or word.name == "class_hours", "that is a table"


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
