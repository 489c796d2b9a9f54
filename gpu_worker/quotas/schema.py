"""The quota file as JSON schema, for editors that complete and check while one types."""

from collections.abc import Sequence
from typing import Any

from gpu_worker.quotas.hours_words import CLASS_HOURS_WORDS
from gpu_worker.quotas.values import PROJECT_NAME_LENGTH, QOS_NAME_LENGTH, Word
from gpu_worker.quotas.words import PROJECT_WORDS, QOS_WORDS
from gpu_worker.scheduler.projects import DEFAULT_QOS


def schema() -> dict[str, Any]:
    """What one file may say, word by word. What words come to together, only the reader checks."""
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
            "qos": {
                "description": "Classes of service by name.",
                "type": ["object", "null"],
                "propertyNames": _name(QOS_NAME_LENGTH),
                "properties": {one.name: {"$ref": "#/$defs/qos"} for one in DEFAULT_QOS},
                "additionalProperties": {"$ref": "#/$defs/qos", "type": "object", "required": ["walltime"]},
            },
        },
        "$defs": {
            "project": _settings(PROJECT_WORDS),
            "class_hours": {**_settings(CLASS_HOURS_WORDS), "type": "object"},
            "qos": _settings(QOS_WORDS),
        },
    }


def _name(longest: int) -> dict[str, Any]:
    return {"minLength": 1, "maxLength": longest}


def _settings(words: Sequence[Word]) -> dict[str, Any]:
    form = {
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {word.name: {"description": word.help} | word.kind.schema() for word in words},
    }
    needed = [word.name for word in words if word.is_needed]
    return {**form, "required": needed} if needed else form
