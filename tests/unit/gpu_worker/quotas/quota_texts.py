"""Quota files as texts: read, and what is said of one that is wrong."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import settings

from bulletin.errors import BadConfig
from gpu_worker.quotas import Finding, Quotas, parse_quotas
from gpu_worker.quotas.quota_settings import read_setting
from gpu_worker.quotas.tree import TreeLeaf
from gpu_worker.quotas.value_kinds import QuotaSetting, UnfitValue

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


def accepts(word: QuotaSetting, value: str | float | bool | tuple[str, ...] | None) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        read_setting(word, TreeLeaf(Decimal(str(value)) if number else value))  # type: ignore[arg-type]
    except UnfitValue:
        return False
    return True


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
LECTURE = """
[projects.cs101.class_hours.lecture]
days = ["Wed", "Mon"]
from = "10:00"
until = "12:00"
guaranteed = 8
time_zone = "Europe/Berlin"
"""
