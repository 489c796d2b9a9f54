"""What cells print, in one stream for all of them, as a kernel has one: what holds it goes on printing."""

import io


class CellOutput(io.TextIOBase):
    """Stands for the `sys.stdout` of a kernel; to the state it is a standard stream, as a buffer in memory is not."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")  # by this, click knows text
        self._parts.append(text)
        return len(text)

    def take(self) -> str:
        """Take out what was printed since the last time."""
        text = "".join(self._parts)
        self._parts.clear()
        return text
