"""The way of a notebook to its pool: found when it is first needed, and one conversation at a time."""

import os
from collections.abc import Callable
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from bulletin.errors import BulletinError, CellLost, NoPool
from bulletin.ids import KernelId, LeaseId
from bulletin_magic.connection import availability, discovery
from bulletin_magic.connection.deliveries import (
    CellFinished,
    CellList,
    LeaseChanged,
    LeaseReleased,
    PoolStatus,
)
from bulletin_magic.connection.link import Link
from bulletin_magic.connection.session_events import CellListAsked, CellSubmitted, PoolStatusAsked, ReleaseAsked
from bulletin_magic.output.late_output import LateOutput
from bulletin_magic.output.notes import StatusLine
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.conversation import Conversation, RunWatcher, StopButton
from bulletin_magic.running.kernel_activity import KernelActivity
from bulletin_magic.running.kernel_shutdown import KernelShutdown

UNDER_WAY = (
    "Another %%gpu cell of this notebook is under way.",
    "Wait for it, or run this one in another notebook.",
)


class PoolClient:
    """The pool of this notebook, and the link on which its cells go there. Nothing is connected before it is needed."""

    def __init__(
        self,
        shell: InteractiveShell,
        comms: WidgetComms,
        echoes: LateOutput,
        ending: KernelShutdown,
        make_activity: Callable[[], KernelActivity],
    ) -> None:
        self._shell, self._comms, self._echoes, self._make_activity = shell, comms, echoes, make_activity
        self._ending = ending
        self._place: discovery.PoolAddress | None = None
        self._link: Link | None = None
        self._is_busy, self._pid = False, os.getpid()
        file = getattr(getattr(getattr(shell, "kernel", None), "parent", None), "connection_file", None)
        self._kernel = discovery.kernel_id(file)

    @property
    def words(self) -> str:
        """Where it is, for people; empty before it was found."""
        return self._place.words if self._place else ""

    @property
    def is_own(self) -> bool:
        """Whether this process is the notebook's, and not one that was forked from it."""
        return os.getpid() == self._pid

    @property
    def is_connected(self) -> bool:
        """Whether there is a link that can be used."""
        return self._link is not None and self._link.is_usable

    def holds_lease(self, lease_id: LeaseId | None) -> bool:
        """Whether the link holds this lease."""
        return lease_id is not None and self._link is not None and self._link.lease_id == lease_id

    def move(self, file: Path) -> str:
        """Use the pool of a connection file from now on; its words. Raises NoPool for a file that is none."""
        place = discovery.from_file(file)
        self.leave()
        self._place = place
        return place.words

    def leave(self) -> None:
        """Give back what cells of this notebook hold; background cells go on."""
        if self._link is not None and self.is_own:
            self._link.close()
            self._link = None

    def detach(self) -> None:
        """The kernel ends: let a cell that runs go on for another one, and give everything else back."""
        if self._link is not None and self.is_own:
            self._link.tell(ReleaseAsked(keeps_cell=True))

    def check_free(self) -> None:
        """Raise NoPool where this process, or this moment, is not one for the pool."""
        if not self.is_own:
            raise NoPool("A process that was forked from a notebook has no pool.", "Use %%gpu in the notebook itself.")
        if self._is_busy:
            raise NoPool(*UNDER_WAY)

    def converse(
        self, asked: CellSubmitted | PoolStatusAsked | CellListAsked | ReleaseAsked, watcher: RunWatcher | None = None
    ) -> tuple[CellFinished | LeaseChanged | PoolStatus | CellList | LeaseReleased, Exception | None]:
        """Ask, show all that comes until the answer, and give it; with what input() raised. Raises BulletinError.

        `watcher` learns what becomes of a cell.
        """
        self.check_free()
        self._is_busy = True
        line = StatusLine(self._shell, is_whole=isinstance(asked, CellSubmitted) and asked.is_whole)
        conversation = None
        try:
            activity = self._make_activity()
            link = self._connect(line)
            button = StopButton(link, lambda: link.close(keeps_cell=self._ending.keeps_cells))
            conversation = Conversation(link, self._shell, line, self._comms, activity, button, watcher)
            return conversation.hold(asked), conversation.input_error
        except CellLost:  # of a cell that was ended because nobody could answer it
            if conversation is not None and conversation.input_error is not None:
                raise conversation.input_error from None
            raise
        finally:
            line.clear()
            self._is_busy = False

    def look(self) -> PoolStatus | str | None:
        """The pool as it is; a sentence where it cannot be asked; None where it would have to be started first."""
        may_start = self._place is None or self._place.is_own
        is_settled = self._link is not None and self._link.is_usable and self._link.is_settled
        if may_start and not is_settled and not availability.starts_none(os.environ):
            return None
        try:
            answer, _ = self.converse(PoolStatusAsked())
        except BulletinError as error:
            return error.problem if isinstance(error, NoPool) else str(error)
        assert isinstance(answer, PoolStatus)
        return answer

    def connect_apart(self, name: str) -> Link:
        """A link of its own to this notebook's pool, for work beside its cells."""
        self.check_free()
        line = StatusLine(self._shell)
        try:
            self._connect(line)  # so that a pool of one's own is started, or found again
        finally:
            line.clear()
        assert self._place is not None, "it has just been connected to"
        return Link(self._place.connection, KernelId(f"{self._kernel}-{name}"), self._place.words, self._echoes.show)

    def _connect(self, line: StatusLine) -> Link:
        """The link that is there, or one to the pool that is found. A pool of one's own may have gone to sleep."""

        def say(text: str) -> None:
            line.say(text)
            line.show_now()

        link = self._link
        if link is not None and link.is_usable and (link.is_settled or self._place is None or not self._place.is_own):
            return link
        place = self._place
        if place is None or place.is_own:
            place = discovery.find(os.environ, say)
        if link is not None and link.is_usable and place == self._place:
            return link
        self.leave()
        self._place = place
        self._link = Link(place.connection, self._kernel, place.words, self._echoes.show)
        return self._link
