"""A ticket lets in to the one lease that it was drawn for, at the one node that has it, and nowhere else."""

from collections.abc import Callable, Sequence
from itertools import product

import zmq

from bulletin.wire import channel, frames, messages as wire
from tests.integration.conftest import PATIENCE_S, Notebook, until
from tests.integration.nodes import AGENT, Part, add, nodes

#: What shows a session's ticket, in a notebook that has run a cell.
GRANTED = """
import gc
granted = next(one for one in gc.get_objects() if type(one).__name__ == "Granted")
print(granted.agent.address, granted.agent.public_key, granted.lease, granted.ticket)
"""
HEARD: frames.Unpacker[wire.Gone | wire.Attached] = frames.Unpacker(wire.Gone | wire.Attached)


def is_let_in(address: str, key: str, lease: str, ticket: str) -> bool:
    """What a node says to who shows this ticket."""
    context = zmq.Context()
    kernel = channel.connect(context.socket(zmq.DEALER), address, key, channel.DATA_LIMIT)
    try:
        kernel.send_multipart(
            frames.pack(wire.Attach(protocol=wire.PROTOCOL, lease=lease, ticket=ticket))  # type: ignore[arg-type]
        )
        assert kernel.poll(PATIENCE_S * 1000)
        return isinstance(HEARD.unpack(kernel.recv_multipart())[0], wire.Attached)
    finally:
        context.destroy(linger=0)


def test_a_ticket_that_is_replayed_at_another_node_or_for_anothers_lease_lets_nobody_in(
    broker: Part, start: Callable[..., Part], open_notebook: Callable[..., Notebook]
) -> None:
    for name in ("node1", "node2"):
        add(broker, name, name)
        start("agent", name, *AGENT)
    until(lambda: nodes(broker.folder) == {"node1", "node2"}, "both nodes")
    notebooks = [open_notebook(BULLETIN_CONNECTION_FILE=str(broker.folder / "connection.json")) for _ in range(2)]
    for number, notebook in enumerate(notebooks):
        notebook.run(f"%%gpu\nx = {number}")
    granted: Sequence[list[str]] = [notebook.run(GRANTED).stream().split() for notebook in notebooks]
    (address1, *_), (address2, *_) = granted
    assert address1 != address2
    own = [tuple(one) for one in granted]
    for (address, key, *_), lease, ticket in product(granted, *zip(*(one[2:] for one in granted), strict=True)):
        if (address, key, lease, ticket) not in own:
            assert not is_let_in(address, key, lease, ticket), (address, lease)
    for number, notebook in enumerate(notebooks):
        assert notebook.run("%%gpu\nprint(x)").stream() == f"{number}\n", "each goes on as it was"
    assert is_let_in(*own[0]), "the question is asked rightly"
