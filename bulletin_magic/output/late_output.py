"""What cells print that have ended: their threads go on, and it is shown below the cell that has started them."""

import json
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from bulletin.ids import CellId
from bulletin_magic.connection.session_events import ShowLateOutput
from bulletin_magic.output.frontend import is_notebook
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.output.widget_models import KINDS

#: Of so many cells it is known where in the notebook they are.
_KEPT = 1024
_SHOWN = frozenset({"stream", "display_data", "update_display_data", "clear_output", "error"})


class LateOutput:
    """Knows the requests that cells came with. `show` may be called in any thread."""

    def __init__(
        self, shell: InteractiveShell, comms: WidgetComms, keep: Callable[[CellId, str, dict[str, Any], int], None]
    ) -> None:
        """`keep` gets all that is shown: the cell, and as `outputs.Keep`."""
        self._shell, self._comms, self._keep = shell, comms, keep
        self._requests: OrderedDict[str, Any] = OrderedDict()

    def began(self, cell: CellId) -> None:
        """The kernel's request of now is the cell's."""
        if is_notebook(self._shell):
            kernel: Any = getattr(self._shell, "kernel", None)
            self._requests[cell] = kernel.get_parent()
            if len(self._requests) > _KEPT:
                self._requests.popitem(last=False)

    def show(self, heard: ShowLateOutput) -> None:
        """Show it where the cell is; in a terminal, where everything is."""
        kind, message = heard.printed.type, json.loads(heard.printed.content)
        buffers = heard.printed.buffers
        kept = {**message, "buffers": buffers} if buffers else message
        self._keep(heard.cell, kind, kept, len(heard.printed.content) + sum(map(len, buffers)))
        request = self._requests.get(heard.cell.partition("-")[0])  # a cell that was run again has a number
        kernel: Any = getattr(self._shell, "kernel", None)
        if request is not None and kind in KINDS:
            self._comms.say(kind, message, heard.printed.buffers, request)
        elif request is not None and kind in _SHOWN:
            kernel.session.send(kernel.iopub_socket, kind, message, parent=request, ident=f"stream.{kind}".encode())
        elif kernel is None and kind == "stream":
            print(message["text"], end="", file=getattr(sys, message["name"]))
