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
from bulletin_magic.output.widget_models import COMM_KINDS

#: Of so many cells it is known where in the notebook they are.
_KNOWN_CELLS = 1024
_SHOWN_KINDS = frozenset({"stream", "display_data", "update_display_data", "clear_output", "error"})


class LateOutput:
    """Knows the requests that cells came with. `show` may be called in any thread."""

    def __init__(
        self, shell: InteractiveShell, comms: WidgetComms, record: Callable[[CellId, str, dict[str, Any], int], None]
    ) -> None:
        """Take what records all that is shown: it is told the cell, and what an `OutputRecorder` is told."""
        self._shell, self._comms, self._record = shell, comms, record
        self._requests: OrderedDict[str, Any] = OrderedDict()

    def remember_request(self, cell: CellId) -> None:
        """Remember that the kernel's request of this moment is the cell's."""
        if is_notebook(self._shell):
            kernel: Any = getattr(self._shell, "kernel", None)
            self._requests[cell] = kernel.get_parent()
            if len(self._requests) > _KNOWN_CELLS:
                self._requests.popitem(last=False)

    def show(self, late: ShowLateOutput) -> None:
        """Show an output where its cell is; in a terminal, where everything is."""
        output = late.output
        kind, message = output.type, json.loads(output.content)
        recorded = {**message, "buffers": output.buffers} if output.buffers else message
        self._record(late.cell, kind, recorded, len(output.content) + sum(map(len, output.buffers)))
        request = self._requests.get(late.cell.partition("-")[0])  # a cell that was run again has a number
        kernel: Any = getattr(self._shell, "kernel", None)
        if request is not None and kind in COMM_KINDS:
            self._comms.forward(kind, message, output.buffers, request)
        elif request is not None and kind in _SHOWN_KINDS:
            kernel.session.send(kernel.iopub_socket, kind, message, parent=request, ident=f"stream.{kind}".encode())
        elif kernel is None and kind == "stream":
            print(message["text"], end="", file=getattr(sys, message["name"]))
