"""Comms of widgets that live on the pool: this kernel says what they say, and brings them what their views answer.

The front end knows the kernel alone. A comm that the executor has opened is opened here under the same id; what its
view says is a call of its twin there, which is a cell as any other: what the callbacks change comes back.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from bulletin.state.reducers.widgets import make_comm

#: Brings a message of a front end to the executor. False where the notebook's own is to hear it, now and from now on.
ViewMessageHandler = Callable[[Mapping[str, Any]], bool]


class WidgetComms:
    """Those that the executor of now has opened, and those of cells in the background."""

    def __init__(self, shell: InteractiveShell, bring: ViewMessageHandler | None = None) -> None:
        """Without `bring` their views are heard by what has come to the notebook, and by nobody on the pool."""
        self._shell, self._bring = shell, bring
        self._theirs: dict[str, ViewMessageHandler] = {}
        self._before: dict[str, Callable[..., Any]] = {}

    def say(
        self,
        kind: str,
        message: Mapping[str, Any],
        buffers: tuple[bytes, ...],
        request: Any = None,
        bring: ViewMessageHandler | None = None,
    ) -> None:
        """Say to the front end what a comm of the executor says, on this request or that of now.

        `bring` is for the comms of another executor than that of the notebook's cells. In a terminal nobody hears it.
        """
        kernel: Any = getattr(self._shell, "kernel", None)
        manager: Any = getattr(kernel, "comm_manager", None)
        if manager is None:
            return
        content, metadata = message["content"], message.get("metadata", {})
        comm_id = content["comm_id"]
        kernel.session.send(
            kernel.iopub_socket,
            kind,
            content,
            metadata=metadata,
            parent=request or kernel.get_parent(),
            ident=f"comm-{comm_id}".encode(),
            buffers=list(buffers),
        )
        if kind == "comm_open":
            bring = bring or self._bring
            if bring is not None:
                self._listen(kernel)
                self._theirs[comm_id] = bring
            make_comm(manager, comm_id, content["target_name"])
        elif kind == "comm_close":
            self._theirs.pop(comm_id, None)
            ours = manager.comms.pop(comm_id, None)
            if ours is not None:
                ours._closed = True  # it has been said

    def reopen(self, message: Mapping[str, Any]) -> None:
        """Open a comm of an executor on a page that has come since. Widgets of the notebook's own it knows already."""
        kernel: Any = getattr(self._shell, "kernel", None)
        widgets: Any = sys.modules.get("ipywidgets.widgets.widget")
        name = message["content"]["comm_id"]
        if kernel is None or name in getattr(widgets, "_instances", ()):
            return
        kernel.session.send(
            kernel.iopub_socket,
            "comm_open",
            message["content"],
            metadata=message.get("metadata", {}),
            parent=kernel.get_parent(),
            ident=f"comm-{name}".encode(),
            buffers=list(message["buffers"]),
        )

    def close(self) -> None:
        """Bring nothing any more."""
        kernel: Any = getattr(self._shell, "kernel", None)
        if self._before:
            kernel.shell_handlers.update(self._before)
            self._before = {}
        self._theirs.clear()

    def _listen(self, kernel: Any) -> None:
        if not self._before:
            self._before = {kind: kernel.shell_handlers[kind] for kind in ("comm_msg", "comm_close")}
            kernel.shell_handlers.update(dict.fromkeys(self._before, self._hear))

    def _hear(self, stream: Any, ident: Any, message: dict[str, Any]) -> Any:
        kind, comm_id = message["header"]["msg_type"], message["content"].get("comm_id")
        bring = self._theirs.get(comm_id)
        if bring is not None:
            if bring(message):
                return None
            # Their executor is gone: what has come to the notebook goes on by itself.
            self._theirs = {one: its for one, its in self._theirs.items() if its != bring}
        return self._before[kind](stream, ident, message)
