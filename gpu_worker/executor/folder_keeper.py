"""The folder keeper: a process beside an executor, which has the notebook's folders on a node that does not share them.

It is a process of its own because whoever opens a file may hold the executor's interpreter while it waits for it.
"""

import contextlib
import fcntl
import os
import resource
import select
import shutil
import signal
import socket
import time
from pathlib import Path

import msgspec

from bulletin.wire.frames import UNREADABLE
from gpu_worker.executor.folder_mirror import FolderMirror
from gpu_worker.executor.folder_orders import MOST_SENTENCES, PACKET_BYTES, Done, Order, encode_done
from gpu_worker.executor.folder_requests import FolderRequests, FolderUnreachable
from gpu_worker.executor.folder_return import FolderReturn
from gpu_worker.executor.folder_transfers import FolderTransfers
from gpu_worker.executor.leased_files import LeasedFiles
from gpu_worker.executor.library_fetches import LibraryFetches

#: So long before the system lets an open go on, a file is given up whose content has not come.
_EARLY_S = 3.0
#: A file that a cell names comes before it runs if it is larger: it might take longer than an open can wait.
_LARGE_BYTES = 100_000_000


class FolderKeeper:
    """Does what its executor orders, and brings files that somebody waits for."""

    def __init__(self, link: socket.socket, orders: socket.socket, scratch: Path) -> None:
        self._orders, self._scratch = orders, scratch
        self._leases = LeasedFiles()
        requests = FolderRequests(link)
        self._transfers = FolderTransfers(requests)
        self._libraries = LibraryFetches(requests, scratch / "libraries")
        self._mirrors: dict[str, FolderMirror] = {}
        #: What its user has been told of folders that do not follow cells.
        self._told: set[str] = set()

    def serve(self) -> None:
        """Serve until the executor is gone."""
        while True:
            ready, _, _ = select.select([self._orders, self._leases.descriptor], [], [])
            if self._leases.descriptor in ready:
                self._fill_broken()
            if self._orders in ready:
                packet = self._orders.recv(PACKET_BYTES)
                if not packet:
                    return
                try:
                    order = msgspec.msgpack.decode(packet, type=Order)
                except UNREADABLE:  # a cell has written to it: nobody waits for an answer
                    continue
                try:
                    done = self._obey(order)
                except FolderUnreachable as error:
                    done = Done(order.number, str(error))
                except OSError as error:
                    done = Done(order.number, f"{error.strerror or error}")
                with contextlib.suppress(OSError):
                    self._orders.send(encode_done(done))

    def _obey(self, order: Order) -> Done:
        match order.what:
            case "mirror":
                return Done(order.number, path=str(self._mirror(order.root).here))
            case "bring":
                return self._bring(order)
            case "fill" | "empty":
                self._open(order)
                return Done(order.number)
            case "hand back":
                for mirror in self._mirrors.values():
                    FolderReturn(self._transfers, mirror).hand_back()
                return Done(order.number, notes=self._take_notes())
            case "libraries":
                notes = self._libraries.bring(order.names)
                problems = self._libraries.problems
                return Done(order.number, notes=tuple(notes), refused=problems, folders=self._libraries.folders)

    def _mirror(self, root: str) -> FolderMirror:
        """Return the mirror of a folder of the notebook, a new one if there is none. Raises OSError."""
        if root not in self._mirrors:
            place = self._scratch / str(len(self._mirrors))
            here, store = place / (Path(root).name or "folder"), place / ".store"
            for folder in (place, here, store):
                folder.mkdir(mode=0o700)
            self._mirrors[root] = FolderMirror(root, here, store, self._leases)
        return self._mirrors[root]

    def _bring(self, order: Order) -> Done:
        refused: dict[str, str] = {}
        for mirror in self._mirrors.values():
            try:
                entries = self._transfers.list_folder(mirror)
            except OSError as error:  # it is gone, say: a cell that runs elsewhere does not mind
                entries = None
                self._tell_once(f"The folder cannot be read in the notebook: {error}.")
            if entries is not None:
                self._transfers.fill_all(mirror, mirror.update(entries))
            self._transfers.fill_all(mirror, mirror.large_files(order.names, _LARGE_BYTES))
            refused.update({str(mirror.path(path)): why for path, why in mirror.refused.items()})
            for why in mirror.folders.values():
                if why:  # a program that lists it finds it empty
                    self._tell_once(f"{why}.")
        some = dict(list(refused.items())[:MOST_SENTENCES])
        return Done(order.number, notes=self._take_notes(), refused=some)

    def _tell_once(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._transfers.note(sentence)

    def _take_notes(self) -> tuple[str, ...]:
        return tuple(self._transfers.take_notes())

    def _open(self, order: Order) -> None:
        """Have the content of a file here, or none: in the executor somebody is about to open it, or to empty it."""
        inode = Path(order.path).stat().st_ino
        for mirror in self._mirrors.values():
            found = mirror.is_to_come(inode)
            if found is not None:
                path, file = found
                if order.what == "empty":
                    mirror.empty(file)
                else:
                    self._transfers.fill(mirror, path)

    def _fill_broken(self) -> None:
        """Bring the files that somebody waits for, whoever that is."""
        until_s = time.monotonic() + self._leases.break_time_s - _EARLY_S
        for descriptor in self._leases.take_broken():
            for mirror in self._mirrors.values():
                found = mirror.find(descriptor)
                if found is not None:
                    self._transfers.fill(mirror, found[0], until_s)


def main(link: int, orders: int, scratch: str) -> None:
    """Serve in a folder that was made for it, and remove that at the end."""
    for number in (signal.SIGINT, signal.SIGTERM):  # it ends with whom it serves
        signal.signal(number, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.umask(0o022)
    lock = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.suppress(OSError):  # who tidies up folders for temporary files leaves it alone then
        fcntl.flock(lock, fcntl.LOCK_SH)
    try:
        FolderKeeper(socket.socket(fileno=link), socket.socket(fileno=orders), Path(scratch)).serve()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
