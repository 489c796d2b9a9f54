"""The quota file as JSON schema, for editors that complete and check while one types."""

from collections.abc import Sequence
from typing import Any

from gpu_worker.quotas.words import PROJECT_NAME_LENGTH, PROJECT_WORDS, QOS_NAME_LENGTH, QOS_WORDS, Word
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
        "$defs": {"project": _settings(PROJECT_WORDS), "qos": _settings(QOS_WORDS)},
    }


def _name(longest: int) -> dict[str, Any]:
    return {"minLength": 1, "maxLength": longest}


def _settings(words: Sequence[Word]) -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {word.name: {"description": word.help} | word.kind.schema() for word in words},
    }
