"""Comms of widgets that live on the pool: this kernel says what they say, and brings them what their views answer.

The front end knows the kernel alone. A comm that the executor has opened is opened here under the same id; what its
view says is a call of the widget there, which is a cell as any other: what the callbacks change comes back.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from bulletin.state.reducers.widgets import make_comm

#: Takes a message of a view to the executor. False where the notebook's own widget is to hear it, from now on too.
ViewMessageHandler = Callable[[Mapping[str, Any]], bool]


class WidgetComms:
    """The comms that the executor of now has opened, and those of cells in the background."""

    def __init__(self, shell: InteractiveShell, on_view_message: ViewMessageHandler | None = None) -> None:
        """Without a handler views are heard by what has come to the notebook, and by nobody on the pool."""
        self._shell, self._on_view_message = shell, on_view_message
        self._handlers: dict[str, ViewMessageHandler] = {}
        #: The kernel's own handlers of `comm_msg` and `comm_close`, while ours stand in their place.
        self._replaced: dict[str, Callable[..., Any]] = {}

    def forward(
        self,
        kind: str,
        message: Mapping[str, Any],
        buffers: tuple[bytes, ...],
        request: Any = None,
        on_view_message: ViewMessageHandler | None = None,
    ) -> None:
        """Send the front end what a comm of the executor says, as part of this request or that of now.

        `on_view_message` is for the comms of another executor than that of the notebook's cells. In a terminal nothing
        is sent.
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
            handler = on_view_message or self._on_view_message
            if handler is not None:
                self._replace_kernel_handlers(kernel)
                self._handlers[comm_id] = handler
            make_comm(manager, comm_id, content["target_name"])
        elif kind == "comm_close":
            self._handlers.pop(comm_id, None)
            ours = manager.comms.pop(comm_id, None)
            if ours is not None:
                ours._closed = True  # it has been said

    def reopen(self, message: Mapping[str, Any]) -> None:
        """Open a comm of an executor on a page that has come since. Widgets of the notebook's own it knows already."""
        kernel: Any = getattr(self._shell, "kernel", None)
        widgets: Any = sys.modules.get("ipywidgets.widgets.widget")
        comm_id = message["content"]["comm_id"]
        if kernel is None or comm_id in getattr(widgets, "_instances", ()):
            return
        kernel.session.send(
            kernel.iopub_socket,
            "comm_open",
            message["content"],
            metadata=message.get("metadata", {}),
            parent=kernel.get_parent(),
            ident=f"comm-{comm_id}".encode(),
            buffers=list(message["buffers"]),
        )

    def close(self) -> None:
        """Give the kernel its own handlers back; messages of views go to the pool no more."""
        kernel: Any = getattr(self._shell, "kernel", None)
        if self._replaced:
            kernel.shell_handlers.update(self._replaced)
            self._replaced = {}
        self._handlers.clear()

    def _replace_kernel_handlers(self, kernel: Any) -> None:
        # ipykernel has no hook for a message to a comm: its CommManager passes them to the comm that has the id, whose
        # callback cannot say "not mine after all". Were `shell_handlers` gone, views of widgets on the pool would hear
        # nothing between cells, and the KeyError here would say so when the first such widget is shown.
        if not self._replaced:
            self._replaced = {kind: kernel.shell_handlers[kind] for kind in ("comm_msg", "comm_close")}
            kernel.shell_handlers.update(dict.fromkeys(self._replaced, self._handle))

    def _handle(self, stream: Any, ident: Any, message: dict[str, Any]) -> Any:
        """Stand in for the kernel's handler: take the message of a view to the pool, or pass it on."""
        kind, comm_id = message["header"]["msg_type"], message["content"].get("comm_id")
        handler = self._handlers.get(comm_id)
        if handler is not None:
            if handler(message):
                return None
            # Their executor is gone: what has come to the notebook goes on by itself.
            self._handlers = {key: other for key, other in self._handlers.items() if other != handler}
        return self._replaced[kind](stream, ident, message)
