"""The line beside a magic, with the values of `$name` and `{expression}` in it; one that is too long is refused."""

from typing import Literal

from IPython.core.interactiveshell import InteractiveShell

from bulletin.errors import BadOption

#: All options together, each with the longest text that it takes, are well below.
MOST_CHARACTERS = 10_000
#: From `var_expand` to the frame whose variables `$name` means: over this file, the magic, and IPython that calls it.
_DEPTH = 3

Magic = Literal["%%gpu", "%gpu", "%%remote"]


def expand_line(shell: InteractiveShell, line: str, magic: Magic) -> str:
    """Expand the variables of a line, called by the magic itself, which opts out of IPython's own expansion.

    That one, and the splitting into words, take time by the square of the length: minutes for 100 kB.

    Raises
    ------
    BadOption
        If the line is too long, as it is written or as it becomes.
    """
    _check(line, magic)
    expanded = str(shell.var_expand(line, _DEPTH))  # type: ignore[no-untyped-call]  # IPython's own
    _check(expanded, magic)
    return expanded


def _check(line: str, magic: Magic) -> None:
    if len(line) > MOST_CHARACTERS:
        raise BadOption(
            f"{len(line):,} characters cannot stand beside {magic}; {MOST_CHARACTERS:,} fit. "
            "Code goes on the lines below.",
            "%gpu" if magic == "%gpu" else "%%gpu",
        )
