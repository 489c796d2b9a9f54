"""The widgets of one cell, each as it is now, so that a page that has never heard of them can make them."""

from collections.abc import Iterator, Mapping
from typing import Any

#: The kinds of messages that comms of widgets send.
COMM_KINDS = frozenset({"comm_open", "comm_msg", "comm_close"})
#: What a widget counts beside its state.
_OVERHEAD_BYTES = 256


class _WidgetModel:
    """The message that opened a widget's comm, with its state as it was last."""

    def __init__(self, message: Mapping[str, Any], size: int) -> None:
        self._message = message
        self._base = size + _OVERHEAD_BYTES
        data = message["content"].get("data") or {}
        self._data: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        self._state = dict(self._data.get("state") or {})
        self._buffers = _buffers_by_path(self._data, message)
        self._sizes: dict[str, int] = {}

    @property
    def size(self) -> int:
        """How much it takes, in bytes; rather too much than too little."""
        return self._base + sum(self._sizes.values())

    def update(self, message: Mapping[str, Any], size: int) -> None:
        """Take in a message that changes some of its state; `size` is that of the message."""
        data = message["content"].get("data") or {}
        if not isinstance(data, Mapping) or data.get("method") != "update":
            return
        buffers = _buffers_by_path(data, message)
        state = data.get("state") or {}
        changed = {*state, *(path[0] for path in buffers)}
        self._state = {name: value for name, value in self._state.items() if name not in changed} | dict(state)
        self._buffers = {path: one for path, one in self._buffers.items() if path[0] not in changed} | buffers
        self._sizes |= dict.fromkeys(changed, size // max(1, len(changed)))

    def message(self) -> Mapping[str, Any]:
        """Return the message that opens it as it is now."""
        data = {**self._data, "state": self._state, "buffer_paths": [list(path) for path in self._buffers]}
        content = {**self._message["content"], "data": data}
        return {**self._message, "content": content, "buffers": tuple(self._buffers.values())}


class WidgetModels:
    """The widgets that a cell has opened and not closed."""

    def __init__(self) -> None:
        self._open: dict[str, _WidgetModel] = {}
        self.size_bytes = 0

    def add(self, kind: str, message: Mapping[str, Any], size: int) -> None:
        """Take in what a comm says; `buffers` in the message are what comes with its content."""
        name = message["content"]["comm_id"]
        model = self._open.get(name)
        self.size_bytes -= model.size if model is not None else 0
        if kind == "comm_open":
            self._open[name] = model = _WidgetModel(message, size)
        elif kind == "comm_close":
            model = None
            self._open.pop(name, None)
        elif model is not None:
            model.update(message, size)
        self.size_bytes += model.size if model is not None else 0

    def messages(self) -> Iterator[Mapping[str, Any]]:
        """Return what opens each of them, those first of which others are made."""
        return (model.message() for model in tuple(self._open.values()))

    def clear(self) -> None:
        """Drop all of them."""
        self._open.clear()
        self.size_bytes = 0


def _buffers_by_path(data: Mapping[str, Any], message: Mapping[str, Any]) -> dict[tuple[Any, ...], bytes]:
    paths = data.get("buffer_paths") or ()
    return {tuple(path): one for path, one in zip(paths, message.get("buffers", ()), strict=False) if path}
