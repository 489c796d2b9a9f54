"""Letters that are seen only in what they make of those beside them: joiners, in emoji and in scripts of India."""

import unicodedata

#: Zero-width joiner and non-joiner.
_JOINERS = frozenset("\u200d\u200c")
#: A sign that takes the vowel of the letter before it.
_VIRAMA = 9


def joins(words: str, at: int) -> bool:
    """Tell whether a letter is a joiner where one has its place; elsewhere one only makes two words look like one.

    Its place is between two letters that are seen: after an emoji, a mark (as the virama of scripts of India), or a
    letter of a script that is written joined.
    """
    if words[at] not in _JOINERS or not 0 < at < len(words) - 1:
        return False
    before, after = words[at - 1], words[at + 1]
    if not after.isprintable() or after.isspace() or after.isascii():
        return False
    return (
        unicodedata.category(before) in {"So", "Sk", "Mn", "Mc"}
        or unicodedata.combining(before) == _VIRAMA
        or unicodedata.bidirectional(before) == "AL"
    )
