"""What one cell showed, to be shown anew: merged as a page merges it, and of limited size."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from bulletin_magic.output import widget_models
from bulletin_magic.output.widget_models import WidgetModels

#: What has a place in a notebook; what widgets say is kept apart.
KINDS = frozenset({"stream", "display_data", "update_display_data", "clear_output", "execute_result", "error"})
#: What each thing that is shown counts beside its content.
_EACH = 256
#: Text is merged up to so many characters: the first of it can go while the last stays.
_PIECE = 32 * 1024
_PIECES = 64
_ESCAPE = "\x1b"

JupyterMessage = Mapping[str, Any]


class _StreamText:
    """Printed text of one stream. A line that was overwritten takes no more room than it does on a screen."""

    def __init__(self, name: str) -> None:
        self.name, self.size = name, _EACH
        self._done: list[str] = []  # pieces up to the last line break
        self._line: list[str] = []  # pieces of the line that is not ended yet

    @property
    def is_full(self) -> bool:
        """Whether what comes next is to be a text of its own: at the end of a line, or of a very long one."""
        return self.size > _PIECE and (not self._line or self.size > 4 * _PIECE)

    def add(self, text: str) -> None:
        """Append what was printed."""
        ended, line_break, rest = text.rpartition("\n")
        if line_break:
            self._put(ended + line_break)
            self._done += self._line
            self._line = []
            if len(self._done) > _PIECES:
                self._done = ["".join(self._done)]
        if rest:
            self._put(rest)

    def _put(self, text: str) -> None:
        """More of the line, and whole lines after it if it ends with one."""
        if "\r" in text:
            before = "".join(self._line)
            text = "\n".join(overwritten(line) for line in (before + text).split("\n"))
            self.size -= _size(before)
            self._line = []
        self._line.append(text)
        self.size += _size(text)

    def message(self) -> tuple[str, JupyterMessage]:
        """All of it as one message."""
        return "stream", {"name": self.name, "text": "".join((*self._done, *self._line))}


class _RichOutput:
    """A picture, a value, an error; or a change of one that another cell shows."""

    def __init__(self, kind: str, message: JupyterMessage, size: int) -> None:
        self.kind, self.content, self.size = kind, message, size + _EACH

    def message(self) -> tuple[str, JupyterMessage]:
        """As it came, or as it was changed to."""
        return self.kind, self.content


class CellOutputs:
    """One cell's outputs. All times are in milliseconds of one clock."""

    def __init__(self, number: int, line: str, page: str, began_ms: int) -> None:
        """`line` is the first of its source that says something, `page` the one that asked for the cell."""
        self.number, self.line, self.page, self.began_ms = number, line, page, began_ms
        self.ended_ms: int | None = None
        #: When it last showed something, and until when the page that shows it is known to have been there.
        self.last_ms: int | None = None
        self.seen_ms = began_ms
        #: The pages that were told of what they have missed.
        self.told: set[str] = set()
        self._entries_bytes = 0
        #: Nobody can show it any more.
        self.is_gone = False
        #: How much had to go, because it was more than is kept.
        self.gone_bytes = 0
        self._kept: deque[_StreamText | _RichOutput] = deque()
        self._displays: dict[str, _RichOutput] = {}
        self._clears_next = False
        self._models = WidgetModels()

    @property
    def size_bytes(self) -> int:
        """How much is kept."""
        return self._entries_bytes + self._models.size_bytes

    def take(self, kind: str, message: JupyterMessage, size: int, now_ms: int) -> None:
        """Keep a message that was shown; `size` is that of its content, in bytes."""
        if kind in widget_models.KINDS:
            self._models.take(kind, message, size)
        if kind not in KINDS:
            return
        self.last_ms = now_ms
        if kind == "clear_output":
            self._clears_next = bool(message.get("wait"))
            if not self._clears_next:
                self._clear()
            return
        if self._clears_next and kind != "update_display_data":
            self._clear()
        if kind == "stream":
            self._print(message["name"], message["text"])
        else:
            self._add(kind, message, size)

    def messages(self) -> Iterator[tuple[str, JupyterMessage]]:
        """All that is kept, in order: kinds and contents."""
        return (one.message() for one in tuple(self._kept))

    def widgets(self) -> Iterator[JupyterMessage]:
        """What opens the comms of its widgets on a page that does not know them, as they are now."""
        return self._models.messages()

    def shrink(self, limit: int) -> None:
        """Let the oldest go until no more than so many bytes are left."""
        while self.size_bytes > limit and self._kept:
            first = self._kept.popleft()
            self._entries_bytes -= first.size
            self.gone_bytes += first.size
            self._displays = {name: one for name, one in self._displays.items() if one is not first}
        if self.size_bytes > limit:
            self.gone_bytes += self._models.size_bytes
            self._models.clear()

    def _print(self, name: str, text: str) -> None:
        last = self._kept[-1] if self._kept else None
        if not isinstance(last, _StreamText) or last.name != name or last.is_full:
            last = _StreamText(name)
            self._kept.append(last)
            self._entries_bytes += last.size
        before = last.size
        last.add(text)
        self._entries_bytes += last.size - before

    def _add(self, kind: str, message: JupyterMessage, size: int) -> None:
        name = message.get("transient", {}).get("display_id") or ""
        shown = self._displays.get(name)
        if kind == "update_display_data" and shown is not None:
            self._entries_bytes += size + _EACH - shown.size
            shown.content, shown.size = message, size + _EACH
            return
        thing = _RichOutput(kind, message, size)
        if name:
            self._displays[name] = thing
        self._kept.append(thing)
        self._entries_bytes += thing.size

    def _clear(self) -> None:
        self._kept.clear()
        self._displays.clear()
        self._entries_bytes = self.gone_bytes = 0
        self._clears_next = False


def overwritten(line: str) -> str:
    """The shortest text that leaves a screen, and its cursor, as this line does. A carriage return overwrites."""
    first = "\r" if line.startswith("\r") else ""  # it may be for what another text has begun
    *before, last = line.removeprefix("\r").split("\r")
    if not before:
        return line
    if _ESCAPE in line:  # how wide that is, only a terminal knows: who colours a bar pads it, too
        shown = next((part for part in reversed(before) if part), "")
    else:
        shown = ""
        for part in before:
            shown = part + shown[len(part) :]
        if len(last) >= len(shown):
            return first + last
    return f"{first}{shown}\r{last}"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
