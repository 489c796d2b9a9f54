"""What a pool answers, in the words of a form: it has no options to type, which the answer speaks of."""

import re

from bulletin.wait_words import as_sentence

_SENTENCES = re.compile(r"(?<=\.) +(?=[A-Z`'\"])")
#: The part of a sentence that names an option, as advice does: "…: ask for less with --time; …".
_OPTION = re.compile(r"(?<=\S )--[a-z]")
_LINE = re.compile(r"`[^`]*`")
_LINE_TO_TYPE = "Start a notebook on CPUs and type that in a cell, or choose another notebook here."
_OTHER_KIND = "Choose another notebook here, or start one on CPUs, whose cells ask for less. Admins set what each has."


def without_options(words: str) -> str:
    """Leave out the advice to type an option, but for whole lines in backticks; words that are nothing else stay."""
    kept = [left for one in _SENTENCES.split(words) if (left := _without_advice(one))]
    return " ".join(kept) or words


def describe_refusal(title: str, sentence: str) -> str:
    """Say that a pool does not give what this kind of notebook has, why, and what there is to do in the form."""
    why = without_options(as_sentence(sentence))
    return f"The pool refused {title!r}. {why} {_LINE_TO_TYPE if _LINE.search(why) else _OTHER_KIND}"


def _without_advice(sentence: str) -> str:
    parts = [_without_option(one) for one in sentence.removesuffix(".").split("; ")]
    kept = "; ".join(filter(None, parts))
    return f"{kept}." if kept else ""


def _without_option(part: str) -> str:
    return ": ".join(one for one in part.split(": ") if not _names_option(one)) if _names_option(part) else part


def _names_option(words: str) -> bool:
    return bool(_OPTION.search(_LINE.sub("", words)))
