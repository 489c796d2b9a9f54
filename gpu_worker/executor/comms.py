"""Comms of an executor: what its widgets say goes out with the cell's output, what their views say comes as a cell.

The notebook's kernel is the one that a front end talks with. It says there what comms here say, under the same ids,
and brings what the views of these widgets answer.
"""

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gpu_worker.executor.relay import Relay

#: Who sends what the comms of this process say; nobody before there is a shell.
_relay: Relay | None = None
_shell: object = None
#: What stands in the library of comms in the place of its own functions.
_replacements: dict[str, object] = {}


def install() -> None:
    """Put our comms in the place of the library's, before anybody imports widgets: they keep what they found."""
    if importlib.util.find_spec("comm") is None:
        return  # nothing here has widgets
    import comm
    from comm.base_comm import BaseComm

    class Comm(BaseComm):
        """A comm that speaks through the relay."""

        @property
        def kernel(self) -> object:
            """What knows the request that output belongs to; widgets that catch output ask."""
            return _shell

        def publish_msg(
            self,
            msg_type: str,
            data: Mapping[str, Any] | None = None,
            metadata: Mapping[str, Any] | None = None,
            buffers: Sequence[Any] | None = None,
            **keys: Any,
        ) -> None:
            """Send a message, which the notebook sends on to the views."""
            if _relay is not None:
                content = {"data": data or {}, "comm_id": self.comm_id, **keys}
                message = {"content": content, "metadata": metadata or {}}
                _relay.publish(msg_type, message, [bytes(memoryview(one).cast("B")) for one in buffers or ()])

    _replacements.update(create_comm=Comm, get_comm_manager=comm.get_comm_manager)
    reinstall()


def reinstall() -> None:
    """Put ours there again: a kernel's library, imported by the user's code, puts its own in their place."""
    for name, value in _replacements.items():
        setattr(sys.modules["comm"], name, value)


def connect(relay: Relay, shell: object) -> None:
    """Speak through this relay from now on."""
    global _relay, _shell
    _relay, _shell = relay, shell
