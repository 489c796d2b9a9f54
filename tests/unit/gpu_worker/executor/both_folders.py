"""A served folder of a notebook, and a mirror of it on a node whose changes go back over a socket that may be cut."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from bulletin.wire import pipe
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.messages import ChangeFolder, FetchFile, FolderFound, FolderProbe, FromFolder, StoreFile
from bulletin_magic.connection.folder_listing import FolderLimits
from bulletin_magic.connection.folder_server import FolderServer
from gpu_worker.executor.folder_mirror import FolderMirror
from gpu_worker.executor.folder_requests import FolderRequests
from gpu_worker.executor.folder_return import FolderReturn
from gpu_worker.executor.folder_transfers import FolderTransfers
from gpu_worker.executor.leased_files import LeasedFiles

#: More changes than any cell here makes.
MANY = 1000


class Both:
    """A notebook's folder, and the node's. The notebook is gone after it has made so many changes (`changes_left`)."""

    def __init__(self, base: Path, leases: LeasedFiles) -> None:
        self.notebook, here, store = base / "notebook", base / "node" / "course", base / "node" / ".store"
        for folder in (self.notebook, here, store):
            folder.mkdir(parents=True)
        self.limits, self.changes_left = FolderLimits(), MANY
        #: What happens in the notebook before it serves a part of a file.
        self.before_part: Callable[[], object] = lambda: None
        self._server = FolderServer(lambda: self.limits)
        root = str(self.notebook)
        self._server.announce(FolderProbe(path=root, token=".bulletin-token"), "0123456789abcdef")
        self._server.on_found(FolderFound(root=root, is_shared=False))
        ours, self._theirs = socket.socketpair()
        self.mirror = FolderMirror(root, here, store, leases)
        self.transfers = FolderTransfers(FolderRequests(ours))
        self.ends = (ours, self._theirs)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        unpacker: Unpacker[FromFolder] = Unpacker(FromFolder)
        while True:
            try:
                message, blobs = unpacker.unpack(pipe.receive(self._theirs))
            except (EOFError, OSError):
                return
            if isinstance(message, StoreFile | ChangeFolder):
                self.changes_left -= 1
                if self.changes_left < 0:
                    self._theirs.shutdown(socket.SHUT_RDWR)
                    return
            assert isinstance(message, StoreFile | ChangeFolder) or self.changes_left >= 0
            if isinstance(message, FetchFile):
                self.before_part()
            answer = self._server.answer(message, blobs)  # type: ignore[arg-type]
            assert answer is not None
            pipe.send(self._theirs, pack(*answer))

    def begin(self) -> None:
        """Have all as it is in the notebook, as before a cell."""
        entries = self.transfers.list_folder(self.mirror)
        if entries is not None:
            self.transfers.fill_all(self.mirror, self.mirror.update(entries))

    def bring(self, *paths: str) -> None:
        """Have the content of these, as if a cell had opened them."""
        for path in paths:
            self.transfers.fill(self.mirror, path)

    def run(self, cell: Callable[[], None]) -> list[str]:
        """Run something on the node as a cell, and take back what it changed; return what its user reads."""
        before = Path.cwd()
        os.chdir(self.mirror.here)
        try:
            cell()
        finally:
            os.chdir(before)
        FolderReturn(self.transfers, self.mirror).hand_back()
        return self.transfers.take_notes()

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            (self.notebook / path).parent.mkdir(parents=True, exist_ok=True)
            (self.notebook / path).write_text(text)

    def read(self) -> dict[str, str]:
        """Return what the notebook has: texts, and where links lead."""
        found = (path for path in self.notebook.rglob("*") if not path.name.startswith(".bulletin-"))
        return {
            str(path.relative_to(self.notebook)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
            for path in found
            if path.is_symlink() or path.is_file()
        }

    def close(self) -> None:
        for end in self.ends:
            end.close() if end is not self._theirs else end.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self._theirs.close()
        self._server.forget()
        self.mirror.update([])


FILES = {"data/a": "text of a", "data/deep/b": "text of b", "log": "text of log", "log.1": "text of log.1"}
