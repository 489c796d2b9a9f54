"""Sizes and durations: "20 GB" and "30 min" for people and configuration, whole bytes and milliseconds for code.

Libraries for this (humanfriendly, pytimeparse, pint) count seconds in floating point and have other words, also in
their errors; these are exact, and what the quota file and `%%gpu` promise to understand.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

_SIZES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
#: The same as other tools write them: 20G is 20 GB, 20Gi is 20 GiB.
_SHORT_SIZES = {unit.removesuffix("B"): factor for unit, factor in _SIZES.items() if unit != "B"}
_TIMES_MS = {"ms": 1, "s": 1000, "min": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
#: The same, written out.
_WORDS_MS = {
    word + plural: _TIMES_MS[unit]
    for unit, words in {"s": ("sec", "second"), "min": ("minute",), "h": ("hr", "hour"), "d": ("day",)}.items()
    for word in words
    for plural in ("", "s")
} | {"mins": MINUTE_MS}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_size(text: str) -> int:
    """Return the whole bytes of a size such as "20 GB".

    Units are powers of 1000 (GB, G) and of 1024 (GiB, Gi); a bare number is bytes.

    Raises
    ------
    ValueError
        With a sentence that shows the accepted form.
    """
    return _parse(text, _SIZES, bare="B", example="20 GB", fold=str.upper, words=_SHORT_SIZES)


def parse_duration_ms(text: str) -> int:
    """Return the whole milliseconds of a duration such as "30 min" or "5 hours".

    Units are ms, s, min, h and d, or their words; a bare number is seconds.

    Raises
    ------
    ValueError
        With a sentence that shows the accepted form.
    """
    return _parse(text, _TIMES_MS, bare="s", example="30 min", fold=str.lower, words=_WORDS_MS)


def _parse(
    text: str,
    units: dict[str, int],
    bare: str,
    example: str,
    fold: Callable[[str], str],
    words: Mapping[str, int] = MappingProxyType({}),
) -> int:
    match = _QUANTITY.fullmatch(text)
    factors = {fold(unit): factor for unit, factor in {**words, **units}.items()}
    factor = factors.get(fold(match[2] or bare)) if match else None
    if match is None or factor is None:
        known = ", ".join(units)
        raise ValueError(
            f"{text!r} is not understood. Write a number and a unit, as in {example!r}; units are {known}."
        )
    whole, _, part = match[1].partition(".")
    scale = 10 ** len(part)
    quantity: int = (int(whole) * scale + int(part or "0")) * factor // scale
    return quantity


def show_size(size_bytes: int) -> str:
    """Write bytes as a person does: three digits at most, powers of 1000."""
    size = float(size_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def spell_duration(duration_ms: int) -> str:
    """Write milliseconds exactly, as `parse_duration_ms` reads them: "4h", "90min"."""
    units = (("d", 24 * HOUR_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", 1000))
    unit, size = next((one for one in units if duration_ms % one[1] == 0), ("ms", 1))
    return f"{duration_ms // size}{unit}"


def show_duration(duration_ms: int) -> str:
    """Write milliseconds as a person says them: "80 ms", "4.2 s", "12 min", "3 h", "7.5 days"."""
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    if duration_ms < 10_000:
        return f"{duration_ms / 1000:.1f} s"
    if duration_ms < 120_000:
        return f"{duration_ms // 1000} s"
    if duration_ms < 7_200_000:
        return f"{duration_ms // MINUTE_MS} min"
    if duration_ms < 48 * HOUR_MS:
        return f"{duration_ms // HOUR_MS} h"
    tenths = duration_ms * 10 // (24 * HOUR_MS)
    return f"{tenths / 10:g} days"
