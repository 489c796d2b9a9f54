"""A notebook's client of its pool: found and connected when it is first needed, one conversation at a time."""

import os
from collections.abc import Callable
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from bulletin.errors import BulletinError, CellLost, NoPool
from bulletin.ids import KernelId, LeaseId, RequestId
from bulletin.wire.messages import EnvironmentFound
from bulletin_magic.connection import availability, discovery
from bulletin_magic.connection.deliveries import PoolStatus
from bulletin_magic.connection.folder_listing import FolderLimits
from bulletin_magic.connection.link import ClientRequest, Link
from bulletin_magic.connection.server_place import ServerPlace
from bulletin_magic.connection.session_events import CellSubmitted, PoolStatusAsked, ReleaseAsked
from bulletin_magic.output.late_output import LateOutput
from bulletin_magic.output.notes import StatusLine
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.conversation import Conversation, ConversationAnswer, RunWatcher, StopButton
from bulletin_magic.running.kernel_activity import KernelActivity
from bulletin_magic.running.kernel_shutdown import KernelShutdown

UNDER_WAY = (
    "Another %%gpu cell of this notebook is under way.",
    "Wait for it, or run this one in another notebook.",
)


class PoolClient:
    """Knows the pool of this notebook, and has the link on which its cells go there."""

    def __init__(
        self,
        shell: InteractiveShell,
        comms: WidgetComms,
        late_output: LateOutput,
        shutdown: KernelShutdown,
        make_activity: Callable[[], KernelActivity],
        folder_limits: Callable[[], FolderLimits],
        place: ServerPlace | None = None,
    ) -> None:
        """Take the place that the hub has reserved for this notebook, if there is one."""
        self._shell, self._comms, self._late_output, self._shutdown = shell, comms, late_output, shutdown
        self._make_activity, self._folder_limits = make_activity, folder_limits
        self._address: discovery.PoolAddress | None = None
        self._link: Link | None = None
        self._is_busy = False
        self._pid = os.getpid()
        file = getattr(getattr(getattr(shell, "kernel", None), "parent", None), "connection_file", None)
        self._place = place
        self._kernel = (place.kernel if place is not None else None) or discovery.kernel_id(file)

    @property
    def description(self) -> str:
        """Where it is, for people; empty before it was found."""
        return self._address.description if self._address else ""

    @property
    def has_projects(self) -> bool:
        """Whether projects count there, as far as one knows: a pool that a cell has started has none."""
        return self._address is None or not self._address.is_own

    @property
    def is_own(self) -> bool:
        """Whether this process is the notebook's, and not one that was forked from it."""
        return os.getpid() == self._pid

    @property
    def is_connected(self) -> bool:
        """Whether there is a link that can be used."""
        return self._link is not None and self._link.is_usable

    @property
    def environment(self) -> EnvironmentFound:
        """How the executor's environment differs from the notebook's, as far as cells have used it."""
        return self._link.environment if self._link is not None else EnvironmentFound()

    @property
    def folder_limits(self) -> FolderLimits:
        """How much of the working folder follows a cell."""
        return self._folder_limits()

    @property
    def folders(self) -> dict[str, bool | None]:
        """The folders that cells of the session ran in, each with whether its node shares it, if that was found."""
        return self._link.folders if self._link is not None else {}

    def name_request(self, usual: str) -> RequestId:
        """Name the next request for a place: as what was reserved for this notebook, if it has not been taken yet."""
        taken = self._place.take_request() if self._place is not None else None
        return taken or RequestId(usual)

    def holds_lease(self, lease_id: LeaseId | None) -> bool:
        """Tell whether the link holds this lease."""
        return lease_id is not None and self._link is not None and self._link.lease_id == lease_id

    def switch_to(self, file: Path) -> str:
        """Use the pool of a connection file from now on; return its description. Raises NoPool for a bad file."""
        address = discovery.read_pool_file(file)
        self.disconnect()
        self._address = address
        return address.description

    def disconnect(self) -> None:
        """Give back what cells of this notebook hold; background cells go on."""
        if self._link is not None and self.is_own:
            self._link.close()
            self._link = None

    def detach(self) -> None:
        """Let a cell that runs go on for another kernel, and give everything else back: this one ends."""
        if self._link is not None and self.is_own:
            self._link.tell(ReleaseAsked(keeps_cell=True))

    def check_usable(self) -> None:
        """Raise NoPool where this process, or this moment, is not one for the pool."""
        if not self.is_own:
            raise NoPool("A process that was forked from a notebook has no pool.", "Use %%gpu in the notebook itself.")
        if self._is_busy:
            raise NoPool(*UNDER_WAY)

    def converse(
        self, request: ClientRequest, watcher: RunWatcher | None = None
    ) -> tuple[ConversationAnswer, Exception | None]:
        """Ask, show all that comes until the answer, and return it with what input() raised. Raises BulletinError.

        `watcher` learns what becomes of a cell.
        """
        self.check_usable()
        self._is_busy = True
        line = StatusLine(self._shell, is_whole=isinstance(request, CellSubmitted) and request.is_whole)
        conversation = None
        try:
            activity = self._make_activity()
            link = self._connect(line)
            button = StopButton(link, lambda: link.close(keeps_cell=self._shutdown.keeps_cells))
            conversation = Conversation(link, self._shell, line, self._comms, activity, button, watcher)
            return conversation.run(request), conversation.input_error
        except CellLost:  # of a cell that was ended because nobody could answer it
            if conversation is not None and conversation.input_error is not None:
                raise conversation.input_error from None
            raise
        finally:
            line.clear()
            self._is_busy = False

    def query_status(self) -> PoolStatus | str | None:
        """Ask how the pool is. A sentence says why it cannot be asked; None: it would have to be started first."""
        may_start = self._address is None or self._address.is_own
        is_settled = self._link is not None and self._link.is_usable and self._link.is_settled
        if may_start and not is_settled and not availability.is_pool_there(os.environ):
            return None
        try:
            answer, _ = self.converse(PoolStatusAsked())
        except BulletinError as error:
            return error.problem if isinstance(error, NoPool) else str(error)
        assert isinstance(answer, PoolStatus)
        return answer

    def open_link(self, name: str) -> Link:
        """Open one more link to this notebook's pool, for work beside its cells. `name` tells it from others."""
        self.check_usable()
        line = StatusLine(self._shell)
        try:
            self._connect(line)  # so that a pool of one's own is started, or found again
        finally:
            line.clear()
        assert self._address is not None, "it has just been connected to"
        return Link(
            self._address.connection,
            KernelId(f"{self._kernel}-{name}"),
            self._address.description,
            self._late_output.show,
            self._folder_limits,
        )

    def _connect(self, line: StatusLine) -> Link:
        """Return the link that is there, or one to the pool that is found: one of the user's own may have ended."""

        def show_at_once(text: str) -> None:
            line.say(text)
            line.show_now()

        link, address = self._link, self._address
        may_have_ended = address is not None and address.is_own
        if link is not None and link.is_usable and (link.is_settled or not may_have_ended):
            return link
        if address is None or address.is_own:
            address = discovery.find_pool(os.environ, show_at_once)
        if link is not None and link.is_usable and address == self._address:
            return link
        self.disconnect()
        self._address = address
        self._link = Link(
            address.connection, self._kernel, address.description, self._late_output.show, self._folder_limits
        )
        return self._link
