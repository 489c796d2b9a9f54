"""What a cell printed and displayed, shown in the notebook as if it had been printed and displayed there."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, TextIO

from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.interactiveshell import InteractiveShell

from bulletin_magic.output.frontend import is_notebook
from bulletin_magic.output.widget_comms import ViewMessageHandler, WidgetComms
from bulletin_magic.output.widget_models import COMM_KINDS

#: Is told the kind of a message, its content, and the size of that in bytes.
OutputRecorder = Callable[[str, Mapping[str, Any], int], None]


class OutputWriter:
    """Replays Jupyter messages through the shell's own hooks, so that %%capture and redirection see them."""

    def __init__(
        self,
        shell: InteractiveShell,
        comms: WidgetComms | None = None,
        *,
        on_view_message: ViewMessageHandler | None = None,
        is_numbered: bool = True,
        record: OutputRecorder | None = None,
    ) -> None:
        """Take what is told of all that is shown (`record`), and who hears the views of widgets.

        `is_numbered`: a value is the `Out[n]` of the cell that runs; else of none.
        """
        self._shell, self._comms = shell, comms or WidgetComms(shell)
        self._on_view_message = on_view_message
        self._is_numbered, self._record = is_numbered, record
        self._unflushed: Literal["stdout", "stderr"] | None = None  #: where text was written last

    def show(self, kind: str, content: bytes, buffers: tuple[bytes, ...] = ()) -> None:
        """Show one message; kinds that have no place in a notebook are dropped. Call `flush` when no more is there."""
        message: dict[str, Any] = json.loads(content)
        if self._record is not None:
            recorded = {**message, "buffers": buffers} if buffers else message
            self._record(kind, recorded, len(content) + sum(map(len, buffers)))
        self.show_parsed(kind, message, buffers)

    def show_parsed(self, kind: str, message: Mapping[str, Any], buffers: tuple[bytes, ...] = ()) -> None:
        """Show a message whose content has been parsed, and record it nowhere."""
        if kind == "stream":
            self._write("stderr" if message.get("name") == "stderr" else "stdout", message["text"])
            return
        self.flush()  # what was printed before comes before
        if kind in {"display_data", "update_display_data"}:
            self._shell.display_pub.publish(
                message["data"],
                message.get("metadata", {}),
                transient=message.get("transient", {}),
                update=kind == "update_display_data",
            )
        elif kind == "clear_output":
            publisher = self._shell.display_pub
            publisher.clear_output(wait=message.get("wait", False))  # type: ignore[no-untyped-call]  # IPython's
        elif kind == "execute_result":
            self._show_result(message["data"], message.get("metadata", {}))
        elif kind == "error":  # a traceback that the cell itself chose to show
            self._show_error(message)
        elif kind == "payload":
            self._add_payload(message)
        elif kind in COMM_KINDS:
            self._comms.forward(kind, message, buffers, on_view_message=self._on_view_message)

    def flush(self) -> None:
        """Flush stdout or stderr where something was written since."""
        if self._unflushed is not None:
            unflushed, self._unflushed = self._unflushed, None
            _stream(unflushed).flush()

    def _write(self, name: Literal["stdout", "stderr"], text: str) -> None:
        if self._unflushed != name:
            self.flush()  # ipykernel collects each stream's text: what was written last could be shown first
        self._unflushed = name
        _stream(name).write(text)

    def _show_result(self, data: dict[str, Any], metadata: dict[str, Any]) -> None:
        hook: Any = self._shell.displayhook
        if not self._is_numbered:
            self._shell.display_pub.publish(data, metadata)
        elif isinstance(sys.displayhook, CapturingDisplayHook):  # %%capture puts its own there
            sys.displayhook.outputs.append({"data": data, "metadata": metadata})
        elif getattr(hook, "pub_socket", None) is not None:  # ipykernel's
            content = {"execution_count": cell_number(self._shell), "data": data, "metadata": metadata}
            hook.session.send(hook.pub_socket, "execute_result", content, parent=hook.parent_header, ident=hook.topic)
        else:
            text = data.get("text/plain", "")
            gap = "\n" if "\n" in text else ""
            sys.stdout.write(f"Out[{cell_number(self._shell)}]: {gap}{text}\n")
            sys.stdout.flush()

    def _show_error(self, message: Mapping[str, Any]) -> None:
        hook: Any = self._shell.displayhook
        if getattr(hook, "pub_socket", None) is not None:
            hook.session.send(hook.pub_socket, "error", message, parent=hook.parent_header, ident=hook.topic)
        else:
            self._write("stderr", "\n".join(message["traceback"]) + "\n")

    def _add_payload(self, message: Mapping[str, Any]) -> None:
        """Add what comes with the reply: a page of help, the text of the next cell."""
        if is_notebook(self._shell):
            manager: Any = self._shell.payload_manager
            manager.write_payload(message)
        elif message["source"] == "page":
            self._write("stdout", message["data"].get("text/plain", "") + "\n")
        elif message["source"] == "set_next_input":
            self._shell.set_next_input(message["text"], replace=message.get("replace", False))


def _stream(name: Literal["stdout", "stderr"]) -> TextIO:
    return sys.stdout if name == "stdout" else sys.stderr


def cell_number(shell: InteractiveShell) -> int:
    """Return the number of the cell that runs, as its prompt shows it, whenever this IPython counts up."""
    number: int = shell.display_trap.hook.prompt_count
    return number


def remember_result(shell: InteractiveShell, result: object) -> None:
    """Set `_`, `__`, `Out[n]` as a local cell does; nothing is shown."""
    hook: Any = shell.displayhook
    if result is not None and hasattr(hook, "update_user_ns"):
        hook.update_user_ns(result)
        hook.fill_exec_result(result)
