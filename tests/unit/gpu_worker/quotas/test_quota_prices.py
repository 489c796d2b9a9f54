"""Prices by type of GPU, in the quota file."""

import json
from typing import Any

import jsonschema
import pytest

from bulletin.errors import BadConfig
from gpu_worker.quotas import Quotas, difference, parse_quotas
from gpu_worker.quotas.schema import quota_schema
from gpu_worker.scheduler.policy.prices import Price
from tests.unit.gpu_worker.quotas.quota_texts import said, toml, yml


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
