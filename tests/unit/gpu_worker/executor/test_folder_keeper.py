"""What is no list or order costs a sentence in the folder keeper, and not the notebook its folder."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bulletin.wire import frames, messages as wire, pipe
from gpu_worker.executor.folder_keeper import FolderKeeper
from gpu_worker.executor.folder_orders import PACKET_BYTES, Done, Order, encode_done, encode_order

ENTRY = ["notes.txt", "file", {"size": 0, "mtime_ns": 10**18}, 0o644, "", ""]


class Around:
    """A keeper, its executor and the notebook, whose list of the folder is the bytes `listing`."""

    def __init__(self, scratch: Path) -> None:
        self._link, self._notebook = socket.socketpair()
        self.orders, self._obeyed = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listing = b""
        self._keeper = FolderKeeper(self._link, self._obeyed, scratch)
        self._threads = [threading.Thread(target=run) for run in (self._keeper.serve, self._serve)]
        for thread in self._threads:
            thread.start()
        self.order(Order(1, "mirror", root="/home/ada/course"))

    def _serve(self) -> None:
        unpacker: frames.Unpacker[wire.FromFolder] = frames.Unpacker(wire.FromFolder)
        while True:
            try:
                asked, _ = unpacker.unpack(pipe.receive(self._notebook))
            except EOFError:
                return
            assert isinstance(asked, wire.ListFolder)
            pipe.send(self._notebook, frames.pack(wire.FolderReply(number=asked.number), [self.listing]))

    def order(self, order: Order) -> Done:
        self.orders.send(encode_order(order))
        return msgspec.msgpack.decode(self.orders.recv(PACKET_BYTES), type=Done)

    def bring(self, listing: bytes) -> str:
        """Have the notebook's folder as it is; what its user is told."""
        self.listing = listing
        done = self.order(Order(2, "bring"))
        return " ".join((done.problem, *done.notes))

    def close(self) -> None:
        self.orders.close()
        self._threads[0].join()
        self._notebook.shutdown(socket.SHUT_RDWR)
        self._threads[1].join()
        for end in (self._notebook, self._link, self._obeyed):
            end.close()


@pytest.fixture
def around(tmp_path: Path) -> Iterator[Around]:
    made = Around(tmp_path)
    yield made
    made.close()


def listing(*entries: Any) -> bytes:
    return msgspec.msgpack.encode(list(entries))


@pytest.mark.parametrize(
    "bad",
    [
        b"\xc1 no list",
        msgspec.msgpack.encode({"notes.txt": 1}),
        listing(ENTRY[:2]),
        listing(["a\0b", *ENTRY[1:]]),
        listing(["../../../evil", *ENTRY[1:]]),
        listing(["/tmp/evil", *ENTRY[1:]]),
        listing(["notes.txt", "file", {"size": 2**64 - 1, "mtime_ns": 2**64 - 1}, 0o644, "", ""]),
        listing(["a", "link", {"size": 0, "mtime_ns": 0}, 0o777, "to\0", ""]),
        b"\x91\x96\xa1\xff",
        b"\x91" * 100_000,
    ],
    ids=range(10),
)
def test_a_list_that_is_none_is_told_and_the_next_one_is_taken(around: Around, tmp_path: Path, bad: bytes) -> None:
    assert "The folder cannot be read in the notebook: its list is none" in around.bring(bad)
    assert not list(tmp_path.rglob("*evil*"))
    assert around.bring(listing(ENTRY)).strip() == ""
    assert (tmp_path / "0" / "course" / "notes.txt").exists()


@pytest.mark.parametrize("bad", [b"\xc1 what a cell wrote", b"\x81\xa4what\xa1\xff", b"\x91" * 100_000], ids=range(3))
def test_an_order_that_is_none_is_passed_over(around: Around, tmp_path: Path, bad: bytes) -> None:
    around.orders.send(bad)
    assert around.bring(listing(ENTRY)).strip() == ""
    assert (tmp_path / "0" / "course" / "notes.txt").exists()


def test_an_order_and_its_answer_are_one_packet_however_long_their_names(around: Around) -> None:
    assert len(encode_order(Order(3, "bring", names=("\U0001f469" * 200,) * 200))) <= PACKET_BYTES
    done = Done(4, notes=("w" * 3000,) * 100, refused={f"{number}{'w' * 4000}": "w" * 4000 for number in range(100)})
    kept = msgspec.msgpack.decode(encode_done(done), type=Done)
    assert kept.number == 4
    assert kept.notes
    assert kept.refused
    around.listing = listing(ENTRY)
    assert around.order(Order(5, "bring", names=("\U0001f469" * 200,) * 200)).problem == ""
