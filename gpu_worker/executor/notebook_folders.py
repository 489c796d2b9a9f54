"""The notebook's folder in an executor: found to be shared, or brought, and what cells change in it taken back."""

import contextlib
import errno
import itertools
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

import bulletin
from bulletin.state import working_folder
from bulletin.wire import pipe
from bulletin.wire.frames import pack
from bulletin.wire.messages import EnvironmentFound, FolderFound, FolderProbe
from gpu_worker.executor.environment import MARK
from gpu_worker.executor.folder_orders import PACKET_BYTES, Done, Order, encode_order

#: What a keeper runs: it finds modules where its executor found them when that started.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[4:]; from gpu_worker.executor import folder_keeper; "
    "folder_keeper.main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])"
)
#: How often the stop button is looked for; and, in looks, whether the keeper stands still, by a cell's doing.
_LOOK_MS = 100
_LOOKS_AT_KEEPER = 10
_EVENTS = frozenset({"open", "os.listdir", "os.scandir"})
_STOPPED = "the cell was stopped"
_KEEPER_GONE = "the process that brings the notebook's files has ended; after `%gpu reset` there is another"
_LATER = "It is tried again after the next cell of this session"
#: What stands in quotes, and words of programs: of a cell's source, so many of them at most, and so long.
_NAMES = re.compile(r"""["']([^"'\n]{1,200})["']|([^\s"'(),;=<>|&]{1,200})""")
_MOST_NAMES = 200


class NotebookFolders:
    """The folders of the notebook that cells ran in. Nothing is started as long as the node shares them."""

    def __init__(self, descriptor: int, scratch: str, is_stop_wanted: Callable[[], bool]) -> None:
        """Take the pipe for folders, and where files may be that are not shared: a folder that is not there yet."""
        self._link: socket.socket | None = socket.socket(fileno=descriptor)
        self._scratch, self._is_stop_wanted = scratch, is_stop_wanted
        self._import_paths = [path for path in sys.path if path]
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._orders: socket.socket | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._pid = os.getpid()
        self._is_keeper_gone = False
        #: What does not follow the cell, by its path here, with a sentence why not.
        self._refused: dict[str, str] = {}

    @property
    def is_mirroring(self) -> bool:
        """Whether there is a folder that the node does not share."""
        return self._orders is not None

    def become_child(self) -> None:
        """Leave the keeper to the executor: this is a fork of it."""
        for end in (self._link, self._orders):
            if end is not None:
                end.close()
        self._link = self._orders = None

    # --- before and after a cell

    def before_cell(self, probe: FolderProbe | None, content: str, source: str) -> tuple[str, tuple[str, ...]]:
        """Find out about a new folder, and have all that are not shared as they are in the notebook.

        `content` is that of the file that the notebook has put into it. Large files that the `source` names come now.

        Returns a sentence why the cell cannot be run, or an empty one; and sentences for its user.
        """
        said: tuple[str, ...] = ()
        if probe is not None:
            is_here = is_shared(probe, content)
            if not is_here and (problem := self._mirror(probe.path)):
                return f"The notebook's folder {probe.path} is not on this node, and {problem}.", ()
            self.tell(FolderFound(root=probe.path, is_shared=is_here))
            said = _warn_of_unwritable(probe) if is_here else ()
        if self._is_keeper_gone:
            return f"The files of the notebook's folder cannot be brought to the node: {_KEEPER_GONE}.", ()
        if self._orders is None:
            return "", said
        names = ("".join(found) for found in itertools.islice(_NAMES.findall(source), _MOST_NAMES))
        done = self._ask("bring", names=tuple(names), is_stoppable=True)
        if done.problem:
            return f"The files of the notebook's folder were not brought to the node: {done.problem}.", ()
        self._refused = done.refused
        return "", (*said, *done.notes)

    def after_cell(self) -> tuple[str, ...]:
        """Take to the notebook what the cell has changed; return sentences for its user."""
        if self._orders is None:
            return ()
        done = self._ask("hand back")
        if done.problem:
            later = "" if self._orders is None else f" {_LATER}."
            return (f"What the cell wrote was not brought to the notebook's folder: {done.problem}.{later}",)
        return done.notes

    def bring_libraries(self, modules: Sequence[str]) -> Done:
        """Have libraries of the notebook here that have these top modules, and all that they need.

        A `problem`, the end of a sentence, is why none of them came.
        """
        if self._is_keeper_gone or self._link is None:
            return Done(0, _KEEPER_GONE)
        try:
            if self._orders is None:
                self._start_keeper()
        except OSError as error:
            return Done(0, str(error))
        return self._ask("libraries", names=tuple(modules), is_stoppable=True)

    def _mirror(self, root: str) -> str:
        """Have a folder of the notebook here; return a problem, as the end of a sentence."""
        try:
            if self._orders is None:
                self._start_keeper()
        except OSError as error:
            return f"its files cannot be brought: {error}"
        # The keeper asks the notebook only after it has heard that the folder is not shared.
        done = self._ask("mirror", root=root)
        if done.problem:
            return f"its files cannot be brought: {done.problem}"
        working_folder.stand_in(root, done.path)
        return ""

    # --- the keeper

    def tell(self, found: FolderFound | EnvironmentFound) -> None:
        """Tell the notebook what was found before a cell; dropped if there is no way."""
        link = self._link
        if link is not None:
            with contextlib.suppress(OSError):
                pipe.send(link, pack(found))

    def _start_keeper(self) -> None:
        """Start it. Raises OSError."""
        assert self._link is not None
        os.mkdir(self._scratch, 0o700)  # noqa: PTH102  raises where somebody else has made one
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours_path = str(Path(bulletin.__path__[0]).parent)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # the stop button is not for it
        try:
            descriptors = (self._link.fileno(), theirs.fileno())
            arguments = [*map(str, descriptors), self._scratch, *self._import_paths, ours_path]
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, *arguments],
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                env={
                    name: os.environ[name] for name in (MARK, "PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ
                },
            )
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            theirs.close()
        self._orders = ours
        sys.addaudithook(self._before_open)

    def _ask(
        self,
        what: Literal["mirror", "bring", "fill", "empty", "hand back", "libraries"],
        root: str = "",
        path: str = "",
        *,
        names: tuple[str, ...] = (),
        is_stoppable: bool = False,
    ) -> Done:
        """Have the keeper do something, and wait for its answer."""
        with self._lock:
            orders = self._orders
            if orders is None:
                return Done(0, _KEEPER_GONE)
            number = next(self._numbers)
            try:
                waiting = select.poll()  # and not `select`, which takes no descriptor above a thousand
                waiting.register(orders, select.POLLIN)
                orders.send(encode_order(Order(number, what, root, path, names)))
                was_still = False
                for look in itertools.count(1):
                    if not waiting.poll(_LOOK_MS):
                        if is_stoppable and self._is_stop_wanted():
                            return Done(number, _STOPPED)
                        if look % _LOOKS_AT_KEEPER == 0:
                            is_still = self._is_keeper_still()
                            if is_still and was_still:  # and not for a moment, with all of its job
                                self._end_keeper()
                                raise ConnectionResetError
                            was_still = is_still
                        continue
                    packet = orders.recv(PACKET_BYTES)
                    if not packet:
                        raise ConnectionResetError
                    done = msgspec.msgpack.decode(packet, type=Done)
                    if done.number == number:  # else of an order whose asker was interrupted
                        return done
            except OSError:
                orders.close()
                self._orders, self._is_keeper_gone = None, True
            return Done(number, _KEEPER_GONE)

    def _is_keeper_still(self) -> bool:
        """Whether somebody has stopped the keeper, or traces it and lets it do nothing."""
        assert self._keeper is not None
        try:
            return Path(f"/proc/{self._keeper.pid}/stat").read_text().rpartition(") ")[2][:1] in "Tt"
        except OSError:
            return True

    def _end_keeper(self) -> None:
        assert self._keeper is not None
        with contextlib.suppress(OSError):
            self._keeper.kill()

    def _before_open(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Have the content of a file before Python opens it: an open itself cannot wait for ever, and says less."""
        if event not in _EVENTS or self._orders is None or os.getpid() != self._pid:
            return
        try:
            full = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100  no Path: it is asked with each open
        except (TypeError, OSError, ValueError):
            return
        if not full.startswith(self._scratch):
            return
        if self._refused and (why := self._find_refusal(full)):
            raise OSError(errno.EFBIG, why, full)
        if event != "open":
            return
        with contextlib.suppress(OSError):
            facts = os.stat(full)  # noqa: PTH116
            if stat.S_ISREG(facts.st_mode) and facts.st_size and not facts.st_blocks:
                flags = arguments[2] if isinstance(arguments[2], int) else 0
                is_emptied = flags & os.O_TRUNC and os.access(full, os.W_OK)
                self._ask("empty" if is_emptied else "fill", path=full)

    def _find_refusal(self, path: str) -> str:
        """Find why this path, or a folder that it is in, does not follow the cell."""
        while len(path) > len(self._scratch):
            if path in self._refused:
                return self._refused[path]
            path = os.path.dirname(path)  # noqa: PTH120
        return ""


def is_shared(probe: FolderProbe, content: str) -> bool:
    """Tell whether the folder here is the notebook's: the notebook has just put a file into it.

    Others may write to that folder: what they have put there under this name is not waited for.
    """
    folder = Path(probe.path)
    try:
        if probe.identity:
            facts = folder.stat()
            return probe.identity == f"{facts.st_ino}:{facts.st_ctime_ns}"
        descriptor = os.open(folder / probe.token, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return os.read(descriptor, len(content) + 1) == content.encode()
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return False


def _warn_of_unwritable(probe: FolderProbe) -> tuple[str, ...]:
    """Say that cells cannot write into a folder that the node shares, where the notebook itself can."""
    if probe.identity or os.access(probe.path, os.W_OK):
        return ()
    is_read_only = os.statvfs(probe.path).f_flag & os.ST_RDONLY
    why = (
        "is mounted read-only" if is_read_only else f"belongs to others than the Unix user {os.geteuid()} of the cells"
    )
    told = f"Cells cannot write into {probe.path} on this node, where it {why}. They read its files there; "
    return (f"{told}what is to be kept they can leave in variables, or write elsewhere.",)
