"""When a page first speaks, though a cell runs: some kernels read what they are asked in a thread of its own."""

import hmac
from collections.abc import Callable, Sequence
from typing import Any

#: What each page asks the kernel first.
FIRST_REQUEST = "kernel_info_request"


class ArrivalListener:
    """Hears first requests as they arrive on the shell channel. A kernel before ipykernel 7 lets nobody hear them."""

    def __init__(self, kernel: Any, note: Callable[[str], None]) -> None:
        """Take who is told of each page's id, in the thread that reads the channel."""
        self._kernel, self._note = kernel, note
        self._thread: Any = getattr(kernel, "shell_channel_thread", None)
        self._pass_on: Any = getattr(kernel, "shell_channel_thread_main", None)

    def install(self) -> None:
        """Listen, where there is such a thread."""
        if self._pass_on is not None:
            self._kernel.shell_channel_thread_main = self._hear  # which a kernel that starts takes
            self._receive_by(self._hear)

    def uninstall(self) -> None:
        """Leave the channel as it was."""
        if self._pass_on is not None:
            self._kernel.shell_channel_thread_main = self._pass_on
            self._receive_by(self._pass_on)

    def _receive_by(self, receive: Callable[[Sequence[Any]], Any]) -> None:
        """Let a kernel that has started receive so. The stream is its thread's; before the start nobody may read it."""
        if self._thread is not None and getattr(self._kernel, "io_loop", None) is not None:
            self._thread.io_loop.add_callback(self._kernel.shell_stream.on_recv, receive, copy=False)

    def _hear(self, parts: Sequence[Any]) -> Any:
        page = self._find_page(parts)
        if page:
            self._note(page)
        return self._pass_on(parts)

    def _find_page(self, parts: Sequence[Any]) -> str:
        """Return the page whose first request this is; empty where it is none, or is not signed by who may ask."""
        session = self._kernel.session
        try:
            signature, header_part, *others = [
                bytes(part) for part in session.feed_identities(parts, copy=False)[1][:5]
            ]
        except ValueError:  # no message; whoever gets it says so
            return ""
        if FIRST_REQUEST.encode() not in header_part:
            return ""
        if not hmac.compare_digest(session.sign([header_part, *others]), signature):
            return ""
        header = session.unpack(header_part)
        return str(header.get("session", "")) if header.get("msg_type") == FIRST_REQUEST else ""
