"""Which names of files follow a cell: those that are text; and how others are shown."""

import unicodedata

#: Control characters, bytes that are no UTF-8, and what ends a line.
_NO_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})

#: So many characters of a path that is no text are shown.
_MOST_SHOWN = 100


def is_text(name: str) -> bool:
    """Tell whether a name can be said in a sentence: with spaces of any width, and emoji of several characters."""
    return name.isprintable() or not any(unicodedata.category(letter) in _NO_TEXT for letter in name)


def show_name(path: str) -> str:
    """Show a path that is no text in a sentence: short, in quotes, with what cannot be printed as escapes."""
    return repr(path if len(path) <= _MOST_SHOWN else f"{path[:_MOST_SHOWN]}...")
