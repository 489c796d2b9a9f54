"""Why an agent's link to its broker does not come about, in words for who runs the node."""

from typing import Literal

import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

from gpu_worker.agent.membership import Membership
from gpu_worker.reachability import find_obstacle

_FAILED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
_REFUSED = zmq.EVENT_HANDSHAKE_FAILED_AUTH
_MADE = zmq.EVENT_HANDSHAKE_SUCCEEDED


class LinkWatch:
    """Follows what ZeroMQ says of the handshakes of one socket."""

    def __init__(self, context: zmq.asyncio.Context, link: zmq.asyncio.Socket) -> None:
        address = "inproc://broker-link"
        link.monitor(address, _FAILED | _REFUSED | _MADE)
        self._news: zmq.asyncio.Socket = context.socket(zmq.PAIR)
        self._news.linger = 0
        self._news.connect(address)
        #: How the last handshake ended since `forget`.
        self.last: Literal["", "made", "failed", "refused"] = ""

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            event = parse_monitor_message(await self._news.recv_multipart())["event"]
            self.last = "made" if event & _MADE else "refused" if event & _REFUSED else "failed"

    def forget(self) -> None:
        """Begin anew, with another connection."""
        self.last = ""

    async def find_problem(self, membership: Membership) -> str:
        """Say why the broker does not answer, as far as can be seen from here, and what to do."""
        address = membership.broker_address
        if obstacle := await find_obstacle(address):
            return obstacle
        if self.last == "refused":
            return (
                f"The broker at {address} does not know the keys in {membership.file}: the node was removed, or has "
                "got new ones. On the broker's host, `bulletin node list` says who is registered, and `bulletin node "
                "add NAME` makes a new file."
            )
        if self.last == "made":
            return f"The broker at {address} has taken the connection and says nothing: see its log."
        return (
            f"What answers at {address} is not the broker that {membership.file} is for: it has not its key. The port "
            "may be another program's; or the pool was made anew, and then the node needs a new file."
        )
