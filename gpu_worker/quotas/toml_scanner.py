"""Where names and values stand in a TOML text that the parser has checked: lines for errors, places for edits."""

import re
import tomllib
from bisect import bisect_left

import msgspec

from gpu_worker.quotas.tree import DEPTH, KeyPath

_BLANK = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED_KEY = re.compile(r"""'[^'\n]*'|"(?:\\.|[^"\\\n])*\"""")
#: The long forms come first: each also begins as a short one. Up to two quotes may stand before the three that end it.
_STRING = re.compile(r"""\"{3}(?:\\[\s\S]|[^\\])*?\"{3,5}|'{3}[\s\S]*?'{3,5}|'[^'\n]*'|"(?:\\.|[^"\\\n])*\"""")
_PLAIN = re.compile(r"[^,\[\]{}\n#\"']+")


class Section(msgspec.Struct):
    """A header in brackets, or the beginning of the text before any, with the names up to the next one."""

    path: KeyPath
    header_line: int  #: 0 is the beginning of the text
    last_line: int  #: the last one with a name or a value in it


class Pair(msgspec.Struct, frozen=True):
    """A name and its value: where they stand, as positions in the text, and as lines."""

    path: KeyPath
    section: int
    start: int  #: of the name
    value_start: int
    end: int  #: of the value
    first_line: int
    last_line: int
    is_inline: bool  #: it is in a table in braces


class NotToml(Exception):
    """The text is not TOML where the scanner is."""


class TomlScanner:
    """Walks over a TOML text and notes where each name is. It believes the text: the parser has checked it."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        #: Each name that was given something, or opened as a table, with its line.
        self._seen: list[tuple[KeyPath, int]] = []
        #: Tables that only names inside them speak of.
        self._implied: list[tuple[KeyPath, int]] = []
        self.sections = [Section((), 0, 0)]
        self.pairs: list[Pair] = []

    def run(self) -> None:
        """Walk over the whole text and note all names. Raises NotToml."""
        header: KeyPath = ()
        while self._skip(_BETWEEN) is not None and self._at < len(self._text):
            line = self._line()
            if self._text[self._at] == "[":
                is_list = self._text.startswith("[[", self._at)
                self._at += 2 if is_list else 1
                header = self._read_key()
                self._at += 2 if is_list else 1
                self._note(header, 0, line)
                self.sections.append(Section(header, line, line))
            else:
                self._scan_pair(header)
                self.sections[-1].last_line = self._line()

    def first_lines(self) -> dict[KeyPath, int]:
        """Return the line where each name is first spoken of."""
        found: dict[KeyPath, int] = {}
        for path, line in sorted([*self._seen, *self._implied], key=lambda one: one[1]):
            found.setdefault(path, line)
        return found

    def find_repeated(self, line: int) -> tuple[KeyPath, int] | None:
        """Find the last name up to this line that was there before, and where; None if there is none."""
        for at in range(len(self._seen) - 1, -1, -1):
            path, here = self._seen[at]
            if here <= line:
                earlier = [there for other, there in self._seen[:at] if other == path]
                earlier += [there for other, there in self._implied if other == path and there < here]
                return (path, min(earlier)) if earlier else None
        return None

    def _scan_pair(self, inside: KeyPath, *, is_inline: bool = False) -> None:
        """Pass over a name and its value, and note the name."""
        line, start = self._line(), self._at
        path = (*inside, *self._read_key())
        self._note(path, len(inside), line)
        self._expect("=")
        self._skip(_BLANK)
        value_start = self._at
        if self._text.startswith("{", self._at) and len(path) < DEPTH:
            self._scan_inline_table(path)
        else:
            self._skip_value()
        end = value_start + len(self._text[value_start : self._at].rstrip(" \t"))
        self.pairs.append(Pair(path, len(self.sections) - 1, start, value_start, end, line, self._line(), is_inline))

    def _scan_inline_table(self, path: KeyPath) -> None:
        """Pass over a table in braces, and note the names in it."""
        self._at += 1
        while True:
            self._skip(_BETWEEN)
            if self._text.startswith("}", self._at):
                self._at += 1
                return
            self._scan_pair(path, is_inline=True)
            self._skip(_BETWEEN)
            if self._text.startswith(",", self._at):
                self._at += 1

    def _skip_value(self) -> None:
        """Pass over one value; what is nested in it is of no interest."""
        depth = 0
        while True:
            if depth:
                self._skip(_BETWEEN)
            if self._at >= len(self._text):
                raise NotToml
            here = self._text[self._at]
            if here in "[{":
                depth += 1
                self._at += 1
            elif here in "]}":
                depth -= 1
                self._at += 1
            elif here == "," and depth:
                self._at += 1
            elif self._skip(_STRING) is None and self._skip(_PLAIN) is None:
                raise NotToml
            if depth <= 0:
                return

    def _read_key(self) -> KeyPath:
        """Pass over a dotted name and the spaces after it; return its parts."""
        parts = []
        while True:
            self._skip(_BLANK)
            bare = self._skip(_BARE_KEY)
            quoted = self._skip(_QUOTED_KEY) if bare is None else None
            if quoted is not None:
                try:
                    parts.append(next(iter(tomllib.loads(f"{quoted} = 0"))))
                except tomllib.TOMLDecodeError:
                    raise NotToml from None
            elif bare is not None:
                parts.append(bare)
            else:
                raise NotToml
            self._skip(_BLANK)
            if not self._text.startswith(".", self._at):
                return tuple(parts)
            self._at += 1

    def _note(self, path: KeyPath, known: int, line: int) -> None:
        """Note a name; `known` is how many of its parts are those of the table that it stands in."""
        self._implied += [(path[:length], line) for length in range(known + 1, min(len(path), DEPTH + 1))]
        self._seen.append((path, line))

    def _expect(self, sign: str) -> None:
        if not self._text.startswith(sign, self._at):
            raise NotToml
        self._at += len(sign)

    def _skip(self, pattern: re.Pattern[str]) -> str | None:
        """Pass over what the pattern matches here and return it; None, and nothing passed, where it does not."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def _line(self) -> int:
        return bisect_left(self._breaks, self._at) + 1
