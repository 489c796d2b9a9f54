"""The Tab key behind %%gpu and %gpu: their options and commands."""

from typing import Any

from bulletin_magic.commands import COMMANDS
from bulletin_magic.options import BACKGROUND, FLAGS, OPTIONS, WAYS


def complete(_: Any, event: Any) -> list[str]:
    """IPython's hook for a line that starts with either: the words that may stand where the cursor is."""
    if event.command.startswith("%%"):
        return [*OPTIONS, *WAYS, *FLAGS, BACKGROUND]
    words = event.line[: -len(event.symbol)] if event.symbol else event.line
    return [command.partition(" ")[0] for command in COMMANDS] if len(words.split()) == 1 else []
