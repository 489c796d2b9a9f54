"""What one cell showed, to be shown anew: merged as a page merges it, and of limited size."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from bulletin_magic.output.widget_models import COMM_KINDS, WidgetModels

#: The kinds of messages that become outputs; what widgets say is kept by `WidgetModels`.
OUTPUT_KINDS = frozenset({"stream", "display_data", "update_display_data", "clear_output", "execute_result", "error"})
#: What each output counts beside its content.
_OVERHEAD_BYTES = 256
#: Text is merged up to so many characters: the first of it can go while the last stays.
_PIECE_BYTES = 32 * 1024
#: So many pieces of a text are kept before they are joined.
_MOST_PIECES = 64
_ESCAPE = "\x1b"

#: The content of a message; that of a comm also has `metadata` and `buffers`.
JupyterMessage = Mapping[str, Any]


class _StreamText:
    """Printed text of one stream. A line that was overwritten takes no more room than it does on a screen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.size_bytes = _OVERHEAD_BYTES
        self._done: list[str] = []  # pieces up to the last line break
        self._line: list[str] = []  # pieces of the line that is not ended yet

    @property
    def is_full(self) -> bool:
        """Whether what comes next is to be a text of its own: at the end of a line, or of a very long one."""
        return self.size_bytes > _PIECE_BYTES and (not self._line or self.size_bytes > 4 * _PIECE_BYTES)

    def add(self, text: str) -> None:
        """Append what was printed."""
        ended, line_break, rest = text.rpartition("\n")
        if line_break:
            self._put(ended + line_break)
            self._done += self._line
            self._line = []
            if len(self._done) > _MOST_PIECES:
                self._done = ["".join(self._done)]
        if rest:
            self._put(rest)

    def _put(self, text: str) -> None:
        """Append to the line that is not ended yet; whole lines may follow it."""
        if "\r" in text:
            before = "".join(self._line)
            text = "\n".join(overwritten(line) for line in (before + text).split("\n"))
            self.size_bytes -= _size_bytes(before)
            self._line = []
        self._line.append(text)
        self.size_bytes += _size_bytes(text)

    def message(self) -> tuple[str, JupyterMessage]:
        """Return all of it as one message: its kind and its content."""
        return "stream", {"name": self.name, "text": "".join((*self._done, *self._line))}


class _RichOutput:
    """A picture, a value, an error; or an update of one that another cell shows."""

    def __init__(self, kind: str, message: JupyterMessage, size: int) -> None:
        self.kind, self.content = kind, message
        self.size_bytes = size + _OVERHEAD_BYTES

    def message(self) -> tuple[str, JupyterMessage]:
        """Return its kind and its content, as it came or as it was updated last."""
        return self.kind, self.content


class CellOutputs:
    """One cell's outputs, to be shown anew. All times are in milliseconds of one clock."""

    def __init__(self, number: int, first_line: str, page: str, began_ms: int) -> None:
        """Take the first line of its source that says something, and the page that asked for the cell."""
        self.number, self.first_line, self.page, self.began_ms = number, first_line, page, began_ms
        self.ended_ms: int | None = None
        #: When it last showed something.
        self.last_ms: int | None = None
        #: Until when the page that shows it is known to have been there.
        self.seen_until_ms = began_ms
        #: The pages that were told of what they have missed.
        self.told_pages: set[str] = set()
        self._entries_bytes = 0
        #: It was forgotten as a whole: nobody can show it any more.
        self.is_forgotten = False
        #: How much was dropped, because it was more than is kept.
        self.dropped_bytes = 0
        self._entries: deque[_StreamText | _RichOutput] = deque()
        self._by_display_id: dict[str, _RichOutput] = {}
        #: The next output takes the place of all that is here: `clear_output(wait=True)`.
        self._clears_next = False
        self._models = WidgetModels()

    @property
    def size_bytes(self) -> int:
        """How much is kept."""
        return self._entries_bytes + self._models.size_bytes

    def add(self, kind: str, message: JupyterMessage, size: int, now_ms: int) -> None:
        """Add a message that was shown; `size` is that of its content, in bytes."""
        if kind in COMM_KINDS:
            self._models.add(kind, message, size)
        if kind not in OUTPUT_KINDS:
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
            self._add_text(message["name"], message["text"])
        else:
            self._add_rich(kind, message, size)

    def messages(self) -> Iterator[tuple[str, JupyterMessage]]:
        """Return all that is kept, in order: kinds and contents."""
        return (one.message() for one in tuple(self._entries))

    def widgets(self) -> Iterator[JupyterMessage]:
        """Return what opens the comms of its widgets, as they are now, on a page that does not know them."""
        return self._models.messages()

    def shrink(self, limit: int) -> None:
        """Drop the oldest until no more than `limit` bytes are left."""
        while self.size_bytes > limit and self._entries:
            first = self._entries.popleft()
            self._entries_bytes -= first.size_bytes
            self.dropped_bytes += first.size_bytes
            self._by_display_id = {name: one for name, one in self._by_display_id.items() if one is not first}
        if self.size_bytes > limit:
            self.dropped_bytes += self._models.size_bytes
            self._models.clear()

    def _add_text(self, name: str, text: str) -> None:
        for piece in _pieces(text):
            self._add_piece(name, piece)

    def _add_piece(self, name: str, text: str) -> None:
        last = self._entries[-1] if self._entries else None
        if not isinstance(last, _StreamText) or last.name != name or last.is_full:
            last = _StreamText(name)
            self._entries.append(last)
            self._entries_bytes += last.size_bytes
        before = last.size_bytes
        last.add(text)
        self._entries_bytes += last.size_bytes - before

    def _add_rich(self, kind: str, message: JupyterMessage, size: int) -> None:
        name = message.get("transient", {}).get("display_id") or ""
        shown = self._by_display_id.get(name)
        if kind == "update_display_data" and shown is not None:
            self._entries_bytes += size + _OVERHEAD_BYTES - shown.size_bytes
            shown.content, shown.size_bytes = message, size + _OVERHEAD_BYTES
            return
        output = _RichOutput(kind, message, size)
        if name:
            self._by_display_id[name] = output
        self._entries.append(output)
        self._entries_bytes += output.size_bytes

    def _clear(self) -> None:
        self._entries.clear()
        self._by_display_id.clear()
        self._entries_bytes = 0
        self.dropped_bytes = 0
        self._clears_next = False


def _pieces(text: str) -> Iterator[str]:
    """Cut what was printed in one go after line breaks, or inside of a very long line."""
    begin = 0
    while len(text) - begin > _PIECE_BYTES:
        end = text.rfind("\n", begin, begin + _PIECE_BYTES) + 1 or text.find("\n", begin, begin + 4 * _PIECE_BYTES) + 1
        end = end or begin + 4 * _PIECE_BYTES
        yield text[begin:end]
        begin = end
    if begin < len(text):
        yield text[begin:]


def overwritten(line: str) -> str:
    """Return the shortest text that leaves a screen and its cursor as this line does: a carriage return overwrites."""
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


def _size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
