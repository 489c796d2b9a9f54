"""The types of the REST API for the pages' own sources, in TypeScript: they cannot say anything else than the API."""

import re
from collections.abc import Sequence
from typing import Any

from bulletin_spawner.service.api_endpoints import Endpoint
from bulletin_spawner.service.openapi_document import describe_api

_HEAD = "// Made by `python docs/generate.py` of the endpoints in bulletin_spawner/service: change those.\n"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def write_types(endpoints: Sequence[Endpoint]) -> str:
    """Write an interface for each type that endpoints take and answer."""
    schemas = describe_api(endpoints, "")["components"]["schemas"]
    parts = [_HEAD]
    for name, schema in sorted(schemas.items()):
        if schema.get("type") != "object":
            parts.append(f"export type {name} = {_type(schema)};\n")
            continue
        fields = "".join(f"  {field}: {_type(kind)};\n" for field, kind in schema["properties"].items())
        parts.append(f"export interface {name} {{\n{fields}}}\n")
    return "\n".join(parts)


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f'"{one}"' for one in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    match schema.get("type"):
        case "array":
            inner = _type(schema.get("items", {}))
            return f"({inner})[]" if re.search(r"\W", inner) else f"{inner}[]"
        case "object":
            return f"Record<string, {_type(schema.get('additionalProperties', {}))}>"
        case str(word):
            return _PLAIN[word]
        case _:
            return "unknown"
