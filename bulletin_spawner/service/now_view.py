"""The pool as one person may see it at this moment: nodes and slots, the line, what frees next. Pure."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from bulletin.ids import LeaseId, ProjectId, UserName
from bulletin.kept_time import is_kept
from bulletin.picture_sight import SOMEONE
from bulletin.pool_words import describe_absence, warn_of_accounts, warn_of_missing
from bulletin.wire.console import WaitingRow
from bulletin.wire.page_requests import PoolLease, PoolReport, PoolSlot
from bulletin_spawner.service.viewer import Sight

#: So much of the line is shown; one's own requests are, wherever they stand.
MOST_SHOWN = 20
_MOST_FREEING = 8
#: A slot that is held and does nothing for so long is said to be idle.
IDLE_MS = 60_000

SlotState = Literal["free", "starting", "busy", "idle", "hot", "leaving", "drained"]


class ShownSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot, and what of its tenant the viewer may see. Of others: that somebody is there, for how long."""

    slot: str
    name: str
    #: busy: a cell runs; idle: a cell runs and the GPU does nothing, or the place is kept between two (`--keep`); hot:
    #: kept ready, no cell runs.
    state: SlotState
    memory_bytes: int = 0
    busy_percent: int | None = None
    used_bytes: int | None = None
    #: How long it is in this state.
    for_ms: int = 0
    #: A cell that runs ends in so long at the latest.
    ends_in_ms: int | None = None
    #: PoolCounts the leases of the pool: slots with the same number belong together.
    group: int | None = None
    user: UserName | None = None
    is_mine: bool = False
    project: ProjectId | None = None
    label: str = ""
    qos: str = ""
    is_in_quota: bool | None = None
    #: It has all of the node, as it asked for.
    is_exclusive: bool = False
    #: By which it is cancelled; only where the viewer may.
    lease: LeaseId | None = None


class ShownNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node with its slots."""

    node: str
    slots: tuple[ShownSlot, ...]
    is_drained: bool = False
    drains_in_ms: int | None = None
    #: Why it is drained, or is to be; empty where nobody said so.
    why_drained: str = ""
    #: Who has brought it for themselves alone; empty: it is the pool's.
    owner: UserName = UserName("")


class ShownRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request in line, and what of it the viewer may see."""

    position: int
    user: UserName
    is_mine: bool
    gpus: int
    qos: str
    waited_ms: int
    usual_ms: int | None = None
    most_ms: int | None = None
    reason: str = ""
    project: ProjectId | None = None
    label: str = ""
    lease: LeaseId | None = None
    may_change: bool = False
    #: Only a node that its user has brought can serve it: it is not in the pool's line, and has no place there.
    is_for_own: bool = False


class Freeing(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that ends in so long at the latest, and the slots that it frees then."""

    node: str
    slots: tuple[str, ...]
    in_ms: int


class PoolCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many slots are in which state, and how many requests wait."""

    total: int = 0
    free: int = 0
    busy: int = 0
    starting: int = 0
    idle: int = 0
    hot: int = 0
    leaving: int = 0
    drained: int = 0
    waiting: int = 0
    mine_running: int = 0
    mine_waiting: int = 0


class NowView(msgspec.Struct, frozen=True, kw_only=True):
    """What *Now* shows."""

    slot_word: str
    uptime_ms: int
    counts: PoolCounts
    nodes: tuple[ShownNode, ...]
    #: The first of the line, and the viewer's own wherever they stand.
    queue: tuple[ShownRequest, ...]
    #: What waits for nodes that people have brought: for admins the first of all, for others their own.
    own_queue: tuple[ShownRequest, ...]
    own_waiting: int
    frees_next: tuple[Freeing, ...]
    warnings: tuple[str, ...] = ()


def view_now(report: PoolReport, sight: Sight) -> NowView:
    """Make of the pool's report what this viewer may see."""
    leases = {lease.lease: lease for lease in report.leases}
    numbers = {lease.lease: number for number, lease in enumerate(report.leases)}
    nodes: dict[str, list[ShownSlot]] = {}
    states = list[SlotState]()  #: of the pool's own
    some: dict[str, PoolSlot] = {}  #: one of each node
    for slot in report.slots:
        lease = leases.get(slot.lease) if slot.lease is not None else None
        if slot.owner and not (sight.viewer.is_admin or slot.owner == sight.viewer.user):
            continue  # what others have brought for themselves is none of the pool's
        nodes.setdefault(slot.node, []).append(_show_slot(slot, lease, numbers, sight))
        some[slot.node] = slot
        states += [] if slot.owner else [slot_state(slot, lease)]
    queue = tuple(show_request(row, sight) for row in report.waiting if _is_shown(row, sight))
    for_own = [row for row in report.waiting_for_own if sight.viewer.is_admin or row.user == sight.viewer.user]
    return NowView(
        slot_word=report.slot_word,
        uptime_ms=report.uptime_ms,
        counts=PoolCounts(
            total=len(states),
            free=states.count("free"),
            busy=states.count("busy"),
            starting=states.count("starting"),
            idle=states.count("idle"),
            hot=states.count("hot"),
            leaving=states.count("leaving"),
            drained=states.count("drained"),
            waiting=report.waiting_count,
            mine_running=sum(lease.user == sight.viewer.user for lease in report.leases),
            mine_waiting=sum(row.user == sight.viewer.user for row in (*report.waiting, *report.waiting_for_own)),
        ),
        nodes=tuple(
            ShownNode(
                node=node,
                slots=tuple(slots),
                is_drained=some[node].is_drained,
                drains_in_ms=some[node].drains_in_ms,
                why_drained=some[node].why_drained,
                owner=some[node].owner,
            )
            for node, slots in sorted(nodes.items())
        ),
        queue=queue,
        own_queue=tuple(show_request(row, sight, is_for_own=True) for row in for_own[:MOST_SHOWN]),
        own_waiting=len(for_own),
        frees_next=tuple(_freeing(report)),
        warnings=(
            *warn_of_accounts(report.shared_accounts),
            *warn_of_missing(report.missing_protections, for_admins=sight.viewer.is_admin),
            *(
                describe_absence(one.node, one.absent_ms, one.problem)
                for one in report.absent_nodes
                if sight.viewer.is_admin
            ),
        ),
    )


def slot_state(slot: PoolSlot, lease: PoolLease | None) -> SlotState:
    """Say what a slot is doing: whether its tenant in fact uses it, too."""
    if lease is None:
        return "leaving" if slot.lease is not None else "drained" if slot.is_drained else "free"
    match lease.state:
        case "granted":
            return "starting"
        case "busy" | "reclaiming":
            is_idle = slot.idle_ms >= IDLE_MS and lease.for_ms >= IDLE_MS
            return "idle" if is_idle or is_kept(lease.cell) else "busy"
        case "hot":
            return "hot"
        case _:
            return "leaving"


def show_request(row: WaitingRow, sight: Sight, *, is_for_own: bool = False) -> ShownRequest:
    """Show of a request what the viewer may see: of others', its place, its size and how long it has waited."""
    known = ShownRequest(
        position=row.position,
        user=SOMEONE,
        is_mine=row.user == sight.viewer.user,
        gpus=row.gpus,
        qos=row.qos,
        waited_ms=row.waited_ms,
        is_for_own=is_for_own,
    )
    if not sight.may_see(row.user, row.project):
        return known
    return msgspec.structs.replace(
        known,
        user=row.user,
        usual_ms=row.usual_ms,
        most_ms=row.wait_ms,
        reason=row.reason,
        project=row.project,
        label=row.label,
        lease=row.lease,
        may_change=sight.leads(row.project),
    )


def _is_shown(row: WaitingRow, sight: Sight) -> bool:
    return row.position <= MOST_SHOWN or row.user == sight.viewer.user


def _show_slot(slot: PoolSlot, lease: PoolLease | None, numbers: dict[LeaseId, int], sight: Sight) -> ShownSlot:
    state = slot_state(slot, lease)
    shown = ShownSlot(
        slot=slot.slot,
        name=slot.name,
        state=state,
        memory_bytes=slot.memory_bytes,
        busy_percent=slot.busy_percent,
        used_bytes=slot.used_bytes,
    )
    if lease is None:
        return shown
    is_running = lease.state in ("busy", "reclaiming")
    shown = msgspec.structs.replace(
        shown,
        for_ms=min(slot.idle_ms, lease.for_ms) if state == "idle" and not is_kept(lease.cell) else lease.for_ms,
        ends_in_ms=max(0, lease.walltime_ms - lease.for_ms) if is_running else None,
        group=numbers.get(lease.lease),
        user=SOMEONE,
    )
    if not sight.may_see(lease.user, lease.project):
        return shown
    return msgspec.structs.replace(
        shown,
        user=lease.user,
        is_mine=lease.user == sight.viewer.user,
        project=lease.project,
        label=lease.label,
        qos=lease.qos,
        is_in_quota=lease.in_quota,
        is_exclusive=lease.is_exclusive,
        lease=lease.lease,
    )


def _freeing(report: PoolReport) -> Iterator[Freeing]:
    """List the cells that end first at the latest, by their walltimes."""
    names = {(slot.node, slot.slot): slot.name for slot in report.slots}
    owned = {slot.node for slot in report.slots if slot.owner}
    ending = sorted(
        (max(0, lease.walltime_ms - lease.for_ms), lease.lease, lease)
        for lease in report.leases
        if lease.state in ("busy", "reclaiming") and lease.node not in owned
    )
    for in_ms, _, lease in ending[:_MOST_FREEING]:
        slots = tuple(names.get((lease.node, slot), slot) for slot in lease.slots)
        yield Freeing(node=lease.node, slots=slots, in_ms=in_ms)
