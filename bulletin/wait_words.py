"""Where somebody stands in line, and how long that usually takes and at most, in the same words wherever it is read."""

from bulletin.units import show_duration

#: A shorter estimate is not worth its words.
_WORTH_SAYING_MS = 1_000


def worth_saying(usual_ms: int | None, most_ms: int | None) -> tuple[int | None, int | None]:
    """Leave out of both estimates, in milliseconds, what says nothing: too short, or usually no less than at most."""
    if most_ms is not None and most_ms < _WORTH_SAYING_MS:
        return None, None
    if usual_ms is None or usual_ms < _WORTH_SAYING_MS or (most_ms is not None and usual_ms >= most_ms):
        return None, most_ms
    return usual_ms, most_ms


def describe_wait(usual_ms: int | None, most_ms: int | None) -> str:
    """Write "usually about 30 s, at most about 12 min", as far as it is known and worth saying; else nothing."""
    usual_ms, most_ms = worth_saying(usual_ms, most_ms)
    said = (("usually", usual_ms), ("at most", most_ms))
    return ", ".join(f"{word} about {show_duration(time_ms)}" for word, time_ms in said if time_ms is not None)


def describe_rest(usual_ms: int | None, most_ms: int | None) -> str:
    """Write the same to stand behind how long somebody has waited already: "; from now on at most about 12 min"."""
    said = describe_wait(usual_ms, most_ms)
    return f"; from now on {said}" if said else ""


def wait_columns(usual_ms: int | None, most_ms: int | None) -> tuple[str, str]:
    """Write both for a table, whose columns are called "usually" and "at most"."""
    usual, most = (None if one is None else show_duration(one) for one in worth_saying(usual_ms, most_ms))
    return usual or "not known", most or ("not known" if most_ms is None else show_duration(most_ms))


def ordinal(number: int) -> str:
    """Write a place in a line as people do: 1st, 2nd, 3rd, 4th."""
    suffix = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def as_sentence(text: str) -> str:
    """Give a text a capital and a full stop, whoever wrote it."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if not text or text.endswith((".", "!", "?")) else ".")


def count(number: int, word: str) -> str:
    """Count what was asked for, in words: "a GPU", "2 GPUs"; whoever asks for no GPU gets a CPU slot."""
    if number < 1:
        return "a CPU slot"
    return f"a {word}" if number == 1 else f"{number} {word}s"


def describe_place(position: int, what: str, usual_ms: int | None, most_ms: int | None, reason: str) -> str:
    """Write where in line somebody stands who waits for `what` ("2 GPUs"), how long, and why; 0 waits for nobody."""
    why = as_sentence(reason)
    if position < 1:
        return " ".join(filter(None, (f"Getting {what} ready.", why)))
    wait = describe_wait(usual_ms, most_ms)
    line = f"Waiting for {what}: {ordinal(position)} in line{f', {wait}' if wait else ''}."
    return " ".join(filter(None, (line, why)))
