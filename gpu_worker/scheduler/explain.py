"""Why a request waits, and for how long at most: from the same questions that decide."""

from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from bulletin.ids import RequestId
from gpu_worker.scheduler.actions import count
from gpu_worker.scheduler.life import Phase, Standing
from gpu_worker.scheduler.order import decisions
from gpu_worker.scheduler.state import Lane, Node, Request, State, lane_of

#: Requests ahead times nodes, beyond which no estimate is made: every kernel that waits asks each second.
_MOST_WORK = 5_000


class Waiting(msgspec.Struct, frozen=True):
    """What a person who waits is told."""

    position: int  #: 1 is next
    ahead: int
    reason: str  #: words without a full stop, to stand after a colon
    wait_ms: int | None  #: the longest wait if every cell uses its whole walltime; None where nobody can say
    in_quota: bool  #: always so until quotas are in force


def waiting(state: State, request_id: RequestId, now_ms: int) -> Waiting | None:
    """Why the request waits; None if it does not: it is granted, refused, withdrawn or was never submitted."""
    request = state.pending.get(request_id)
    if request is None:
        return None
    ahead = state.ahead_of(request)
    return Waiting(
        ahead + 1, ahead, _reason(state, request, ahead), _wait_ms(state, request, ahead, now_ms), in_quota=True
    )


def _reason(state: State, request: Request, ahead: int) -> str:
    if request.standing is Standing.HELD:
        return "this notebook's earlier cell has not ended yet"
    word = count(2, on_cpu=request.lane == "cpu").removeprefix("2 ")
    capable = [node.lanes[request.lane] for node in state.nodes.values()]
    capable = [counts for counts in capable if counts.capacity >= request.need]
    if not state.nodes:
        reason = "no node is connected to the pool"
    elif not capable:
        reason = f"no connected node has {count(request.need, on_cpu=request.lane == 'cpu')}"
    elif ahead < state.settings.look_ahead and _is_room_being_made(state, request):
        if request.need == 1:
            return f"a {word.removesuffix('s')} is being freed for you"
        return f"{request.need} {word} are being freed for you"
    elif not any(counts.free for counts in capable):
        total = sum(counts.capacity for counts in capable)
        reason = f"the only {word.removesuffix('s')} is busy" if total == 1 else f"all {total} {word} are busy"
    elif request.need > 1:
        reason = f"no node has {request.need} {word} free at once"
    else:
        reason = ""  # what is free is kept for one ahead that needs more
    before = f"{ahead} request{' is' if ahead == 1 else 's are'} before yours" if ahead else ""
    return "; ".join(part for part in (reason, before) if part) or "it is being looked at"


def _is_room_being_made(state: State, request: Request) -> bool:
    return any(found is not None for other, found in decisions(state, request.lane) if other is request)


def _wait_ms(state: State, request: Request, ahead: int, now_ms: int) -> int | None:
    """Seat everybody ahead, then the request, each where the slots are free first and for its whole walltime."""
    if request.standing is Standing.HELD:
        return None
    nodes = [node for node in state.nodes.values() if node.lanes[request.lane].capacity]
    if (ahead + 1) * len(nodes) > _MOST_WORK:
        return None
    line = [
        one
        for part in state.lines[request.lane].values()
        for one in part[: bisect_right(part, (request.key, request.id))]
    ]
    free_at = [sorted(_free_at_ms(state, node, request.lane, now_ms)) for node in nodes]
    wait_ms = None
    for _, request_id in sorted(line):
        one = state.pending[request_id]
        times = min((times for times in free_at if len(times) >= one.need), key=lambda t: t[one.need - 1], default=None)
        if times is None:
            wait_ms = None
            continue
        wait_ms = times[one.need - 1]
        times[: one.need] = [wait_ms + one.walltime_ms] * one.need
        times.sort()
    return wait_ms


def _free_at_ms(state: State, node: Node, lane: Lane, now_ms: int) -> Iterator[int]:
    """For each slot, how long until it is free at the latest; hot and leaving ones count as free now."""
    for slot in node.slots.values():
        tenant = node.tenants[slot.id]
        if lane_of(slot) != lane:
            continue
        lease = state.leases[tenant] if tenant is not None else None
        if lease is not None and lease.phase is Phase.BUSY:
            yield max(0, lease.since_ms + lease.walltime_ms - now_ms)
        elif lease is not None and lease.phase is Phase.GRANTED:
            yield max(0, state.alarms[lease.id] - now_ms) + lease.walltime_ms
        else:
            yield 0
