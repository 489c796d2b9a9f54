"""A session in virtual time, with what it said to each side since one last looked."""

from bulletin.ids import CellId, KernelId, LeaseId, RequestId, SessionId, UserName
from bulletin.wire import messages as say
from bulletin.wire.frames import Blob
from bulletin_magic.connection.agent_side import DONE_MS
from bulletin_magic.connection.deliveries import Delivery, RequestFailed, UserNote
from bulletin_magic.connection.resource_spec import ResourceSpec
from bulletin_magic.connection.session_client import SessionClient
from bulletin_magic.connection.session_events import (
    AgentConnected,
    AgentSaid,
    BrokerSaid,
    CellSubmitted,
    ConnectAgent,
    Deliver,
    DropAgent,
    SendToAgent,
    SendToBroker,
    SessionAction,
    SessionEvent,
    Tick,
)

HELLO = say.Hello(protocol=say.PROTOCOL, version="1", token="t", kernel=KernelId("k"))
ADDRESS = say.AgentAddress(address="tcp://node:1", public_key="key")
LEASE = LeaseId("l1")
CELL = CellId("c1")
SMALL: tuple[Blob, ...] = (b"stream", b"buffer")
#: Four chunks beyond the window of eight.
LARGE: tuple[Blob, ...] = (b"stream", bytes(24 * 2**20))


def cell(name: str = "c1", parts: tuple[Blob, ...] = SMALL, resources: ResourceSpec | None = None) -> CellSubmitted:
    return CellSubmitted(
        cell=CellId(name),
        request=RequestId(f"r-{name}"),
        source="1",
        number=7,
        parts=parts,
        resources=resources or ResourceSpec(),
    )


def granted(request: str = "r-c1", lease: LeaseId = LEASE) -> say.Granted:
    return say.Granted(
        request=RequestId(request),
        lease=lease,
        session=SessionId("s"),
        agent=ADDRESS,
        ticket="ticket",
        node="node1",
        slots=("GPU-0",),
        walltime_ms=1_800_000,
    )


def ended(name: str = "c1", outcome: str = "returned", sizes: tuple[int, ...] = (3,)) -> say.Ended:
    parcel = say.Parcel(sizes=sizes, inline=sum(sizes) < 1000)
    return say.Ended(cell=CellId(name), outcome=outcome, parcel=parcel, ran_ms=5)  # type: ignore[arg-type]


def submit(request: str = "r-c1") -> say.Submit:
    return say.Submit(request=RequestId(request), is_qos_asked=False)


def attach(cell: CellId | None = CELL, seen: int = 0) -> say.Attach:
    return say.Attach(protocol=say.PROTOCOL, lease=LEASE, ticket="ticket", cell=cell, seen=seen)


def failure(stage: "Stage") -> Exception:
    (failed,) = [told for told in stage.delivered() if isinstance(told, RequestFailed)]
    return failed.error


class Stage:
    def __init__(self) -> None:
        self.session = SessionClient(HELLO, "of the test")
        self.now_ms = 0
        self.actions: list[SessionAction] = []

    def do(self, event: SessionEvent) -> None:
        self.actions += self.session.step(event, self.now_ms)

    def broker(self, message: say.ToKernel) -> None:
        self.do(BrokerSaid(message))

    def agent(self, message: say.AgentToKernel, *blobs: Blob) -> None:
        self.do(AgentSaid(message, blobs))

    def wait(self, ms: int) -> None:
        """Let time pass, with a tick at each deadline."""
        until_ms = self.now_ms + ms
        while (deadline_ms := self.session.deadline_ms) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.do(Tick())
        self.now_ms = until_ms
        self.do(Tick())

    def seen(self) -> list[SessionAction]:
        actions, self.actions = self.actions, []
        return actions

    def said_to_broker(self) -> list[say.FromKernel]:
        said = [action.message for action in self.actions if isinstance(action, SendToBroker)]
        self.actions = [action for action in self.actions if not isinstance(action, SendToBroker)]
        return said

    def said_to_agent(self) -> list[say.KernelToAgent]:
        said = [action.message for action in self.actions if isinstance(action, SendToAgent)]
        self.actions = [action for action in self.actions if not isinstance(action, SendToAgent)]
        return said

    def delivered(self) -> list[Delivery]:
        told = [action.delivery for action in self.actions if isinstance(action, Deliver)]
        self.actions = [action for action in self.actions if not isinstance(action, Deliver)]
        return told

    def notes(self) -> list[str]:
        return [delivery.text for delivery in self.delivered() if isinstance(delivery, UserNote)]

    def has_dropped(self) -> bool:
        return any(isinstance(action, DropAgent) for action in self.seen())

    # --- the usual way there

    def welcome(self, *, is_known: bool = False) -> None:
        self.broker(say.Welcome(user=UserName("ada"), version="1", is_known=is_known))

    def queue(self, submitted: CellSubmitted | None = None) -> None:
        self.do(submitted or cell())
        self.welcome()

    def grant(self, request: str = "r-c1", lease: LeaseId = LEASE) -> None:
        self.broker(granted(request, lease))
        assert ConnectAgent(ADDRESS, "ticket") in self.actions
        self.do(AgentConnected())

    def start(self, submitted: CellSubmitted | None = None) -> None:
        """A cell that runs, or whose state is on its way."""
        self.queue(submitted)
        self.grant()
        self.agent(say.Attached(lease=LEASE))
        self.seen()

    def finish(self, name: str = "c1") -> None:
        self.agent(ended(name), b"abc")

    def hot(self) -> None:
        """One cell is over, and the agent told so; the lease is kept."""
        self.start()
        self.finish()
        self.wait(DONE_MS)
        self.seen()
