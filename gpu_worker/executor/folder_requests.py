"""What the executor's side asks of the notebook's folder: some requests at once, each again until it is answered."""

import itertools
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bulletin.errors import MalformedMessage
from bulletin.wire import pipe
from bulletin.wire.frames import Blob, Unpacker, pack
from bulletin.wire.messages import (
    ChangeFolder,
    FetchFile,
    FetchLibrary,
    FindLibrary,
    FolderReply,
    ListFolder,
    StoreFile,
    ToFolder,
)

#: What one request carries, and how many of them are under way at once: both sides hold so much in memory.
PART_BYTES = 2**20
_WINDOW = 8
#: So long nobody may answer before a cell is not begun, goes on without what it opens or imports, or its files stay
#: here. Links are cut for a minute, and it takes a moment until both ends know that they are mended.
PATIENCE_S = 120.0
#: The notebook, or the way to it, may be gone for a while: what was lost on the way is said again.
_AGAIN_S = 5.0
_NO_ANSWER = "the notebook did not answer"

Request = ListFolder | FetchFile | StoreFile | ChangeFolder | FindLibrary | FetchLibrary


class FolderUnreachable(Exception):
    """Nobody answers for the notebook's folder; why, as the end of a sentence."""


class Job(NamedTuple):
    """A request to be made with its number, its blobs, and who takes the answer, which may lead to more jobs."""

    make: Callable[[int], tuple[Request, Sequence[Blob]]]
    take: Callable[[FolderReply, Sequence[Blob]], Iterable["Job"]]


class FolderRequests:
    """Asks through the executor's pipe for folders. Used by one thread, and not from within the taking of an answer."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._numbers = itertools.count(1)
        self._unpacker: Unpacker[FolderReply] = Unpacker(ToFolder)

    def run(self, jobs: Iterable[Job], patience_s: float, until_s: float | None = None) -> None:
        """Make all these requests, and those that their answers lead to.

        Raises
        ------
        FolderUnreachable
            If nothing was answered for `patience_s`, or time.monotonic() has come to `until_s`.
        """
        coming, waiting = iter(jobs), deque[Job]()
        under_way: dict[int, tuple[Job, list[Blob]]] = {}
        heard_s = asked_s = time.monotonic()
        while True:
            while len(under_way) < _WINDOW:
                job = waiting.popleft() if waiting else next(coming, None)
                if job is None:
                    break
                number = next(self._numbers)
                frames = pack(*job.make(number))
                under_way[number] = job, frames
                self._send(frames)
            if not under_way:
                return
            ready, _, _ = select.select([self._link], [], [], _AGAIN_S if until_s is None else 1.0)
            now_s = time.monotonic()
            if ready:
                reply, blobs = self._receive()
                if not reply.is_served:
                    raise FolderUnreachable("the notebook that has the cell now is not in that folder")
                if reply.number in under_way:  # else it was answered twice
                    heard_s = now_s
                    job, _ = under_way.pop(reply.number)
                    waiting.extendleft(job.take(reply, blobs))
            elif now_s - asked_s >= _AGAIN_S:
                asked_s = now_s
                for _, frames in under_way.values():
                    self._send(frames)
            if now_s - heard_s > patience_s or (until_s is not None and now_s > until_s):
                raise FolderUnreachable(_NO_ANSWER)

    def _send(self, frames: Sequence[Blob]) -> None:
        try:
            pipe.send(self._link, frames)
        except OSError:
            raise FolderUnreachable(_NO_ANSWER) from None

    def _receive(self) -> tuple[FolderReply, Sequence[Blob]]:
        try:
            return self._unpacker.unpack(pipe.receive(self._link))
        except (EOFError, OSError, MalformedMessage):
            raise FolderUnreachable(_NO_ANSWER) from None
