"""Which names of files follow a cell: those that are text."""

import unicodedata

#: Control characters, bytes that are no UTF-8, and what ends a line.
_NO_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})


def is_text(name: str) -> bool:
    """Tell whether a name can be said in a sentence: with spaces of any width, and emoji of several characters."""
    return name.isprintable() or not any(unicodedata.category(letter) in _NO_TEXT for letter in name)
