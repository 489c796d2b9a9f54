"""What an executor has its folder keeper do, over a pair of sockets that keep messages apart."""

from typing import Literal

import msgspec

#: An answer is one packet of a socket.
MOST_SENTENCES = 100
PACKET_BYTES = 128 * 1024


class Order(msgspec.Struct, frozen=True):
    """`mirror`: have a folder of the notebook here. `bring`: have all of them as they are there, before a cell.

    `fill`: bring the content of the file `path`, as it is called here. `empty`: somebody is about to empty it.
    `hand back`: take to the notebook what cells have changed. `libraries`: bring those that have the modules `names`.
    """

    number: int
    what: Literal["mirror", "bring", "fill", "empty", "hand back", "libraries"]
    #: The notebook's name for a folder.
    root: str = ""
    path: str = ""
    #: What may be names of files that the cell opens; of `libraries`, top modules.
    names: tuple[str, ...] = ()


class Done(msgspec.Struct, frozen=True):
    """The answer to an order; with a `problem` nothing came of it."""

    number: int
    problem: str = ""
    #: Of `mirror`: where the folder is here.
    path: str = ""
    #: Sentences for the user.
    notes: tuple[str, ...] = ()
    #: Of `bring`: files and folders here that do not follow the cell, each with a sentence why not; of `libraries`,
    #: modules that did not come, each with the end of one.
    refused: dict[str, str] = {}
    #: Of `libraries`: where modules are to be looked for.
    folders: tuple[str, ...] = ()


def encode_order(order: Order) -> bytes:
    """Encode it as one packet; of too many `names` the first ones."""
    names = len(order.names)
    while len(packet := msgspec.msgpack.encode(order)) > PACKET_BYTES and names:
        names //= 2
        order = msgspec.structs.replace(order, names=order.names[:names])
    return packet


def encode_done(done: Done) -> bytes:
    """Encode it as one packet; of too many sentences the first ones."""
    most = max(len(done.notes), len(done.refused))
    while len(packet := msgspec.msgpack.encode(done)) > PACKET_BYTES and most:
        most //= 2
        refused = dict(list(done.refused.items())[:most])
        done = msgspec.structs.replace(done, notes=done.notes[:most], refused=refused)
    return packet
