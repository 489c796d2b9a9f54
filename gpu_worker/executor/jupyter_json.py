"""Content of Jupyter messages as JSON, as a kernel would send it."""

import base64
import json
import math
import numbers
from collections.abc import Iterable
from datetime import date


def encode_json(content: object) -> bytes:
    """Encode the content of a message: bytes as base64; NaN and infinities, which JSON does not have, as text."""
    try:
        text = json.dumps(content, default=_to_plain, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        text = json.dumps(_without_nan(content), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _to_plain(value: object) -> object:
    """Convert a value that JSON does not know to one that it does.

    Bytes become base64, dates ISO 8601, other numbers int or float, what can be iterated a list, and the rest its repr.
    """
    match value:
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case date():
            return value.isoformat()
        case numbers.Integral():
            return int(value)
        case numbers.Real():
            return float(value)
        case Iterable():
            return list(value)
        case _:
            return repr(value)


def _without_nan(value: object) -> object:
    """Rebuild content that has what `json.dumps` refuses, with only what JSON has."""
    if isinstance(value, dict):
        return {str(key): _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if value is None or isinstance(value, str | int | float) else _without_nan(_to_plain(value))
