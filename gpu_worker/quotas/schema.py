"""The quota file as JSON schema, for editors that complete and check while one types."""

import tomllib
from collections.abc import Sequence
from typing import Any

from gpu_worker.quotas.class_hours_settings import CLASS_HOURS_SETTINGS
from gpu_worker.quotas.group_rule_settings import GROUP_RULE_SETTINGS, MOST_RULES, RULE_NAME_LENGTH
from gpu_worker.quotas.node_pool_settings import NODE_POOL_SETTINGS, POOL_NAME_LENGTH
from gpu_worker.quotas.quota_settings import (
    MOST_PRICES,
    PRICE_NAME_LENGTH,
    PRICE_SETTINGS,
    PROJECT_SETTINGS,
    QOS_SETTINGS,
    SCHEDULER_SETTINGS,
)
from gpu_worker.quotas.reservation_settings import (
    MOST_RESERVATIONS,
    RESERVATION_NAME_LENGTH,
    RESERVATION_SETTINGS,
)
from gpu_worker.quotas.value_kinds import PROJECT_NAME_LENGTH, QOS_NAME_LENGTH, QuotaSetting
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS


def quota_schema() -> dict[str, Any]:
    """Build the schema of one file, setting by setting. What settings come to together, only the reader checks."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Quotas of a Bulletin pool",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "projects": {
                "description": "Projects by name: hub groups.",
                "type": ["object", "null"],
                "propertyNames": _name(PROJECT_NAME_LENGTH),
                "additionalProperties": {"$ref": "#/$defs/project"},
            },
            "group_rules": {
                "description": "Rules for groups that are no projects here, by name: the first one that fits counts.",
                "type": ["object", "null"],
                "propertyNames": _name(RULE_NAME_LENGTH),
                "additionalProperties": {"$ref": "#/$defs/group_rule"},
                "maxProperties": MOST_RULES,
            },
            "node_pools": {
                "description": "Node pools by name: which GPUs are in each.",
                "type": ["object", "null"],
                "propertyNames": _name(POOL_NAME_LENGTH),
                "additionalProperties": {**_settings(NODE_POOL_SETTINGS), "type": "object", "minProperties": 1},
            },
            "qos": {
                "description": "Classes of service by name.",
                "type": ["object", "null"],
                "propertyNames": _name(QOS_NAME_LENGTH),
                "properties": {one.name: {"$ref": "#/$defs/qos"} for one in DEFAULT_QOS},
                "additionalProperties": {"$ref": "#/$defs/qos", "type": "object", "required": ["walltime"]},
            },
            "scheduler": {"description": "The scheduler itself.", **_settings(SCHEDULER_SETTINGS)},
            "prices": {
                "description": "What an hour of a GPU counts for, by words of its name.",
                "type": ["object", "null"],
                "propertyNames": {**_name(PRICE_NAME_LENGTH), "pattern": "[A-Za-z0-9]"},
                "additionalProperties": PRICE_SETTINGS[0].kind.schema(),
                "maxProperties": MOST_PRICES,
            },
            "reservations": {
                "description": "Reservations by name.",
                "type": ["object", "null"],
                "propertyNames": _name(RESERVATION_NAME_LENGTH),
                "additionalProperties": {"$ref": "#/$defs/reservation"},
                "maxProperties": MOST_RESERVATIONS,
            },
        },
        "$defs": {
            "project": _settings(PROJECT_SETTINGS),
            "group_rule": {
                **_settings(GROUP_RULE_SETTINGS),
                "type": "object",
                "anyOf": [{"required": ["groups"]}, {"required": ["properties"]}],
            },
            "class_hours": {**_settings(CLASS_HOURS_SETTINGS), "type": "object"},
            "qos": _settings(QOS_SETTINGS),
            "reservation": {**_settings(RESERVATION_SETTINGS), "type": "object"},
        },
    }


def _described(one: QuotaSetting) -> dict[str, Any]:
    schema = {"description": one.help} | one.kind.schema()
    if one.example.startswith("[projects."):  # the head of a table, which is no value
        return schema
    return schema | {"examples": [tomllib.loads(f"example = {one.example}")["example"]]}


def _name(longest: int) -> dict[str, Any]:
    return {"minLength": 1, "maxLength": longest}


def _settings(settings: Sequence[QuotaSetting]) -> dict[str, Any]:
    form = {
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {one.name: _described(one) for one in settings},
    }
    needed = [one.name for one in settings if one.is_needed]
    return {**form, "required": needed} if needed else form
