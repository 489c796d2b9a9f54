"""Why no node has room for a request, in words."""

import msgspec

from bulletin.units import show_duration
from gpu_worker.scheduler.actions import count, name_pools
from gpu_worker.scheduler.estimate_cache import Room
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.resources import PLAIN, SlotKind
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.awaited_nodes import AwaitedNodes
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.nodes.own_nodes import shape_of
from gpu_worker.scheduler.placement.keep_time import kept_from_until_ms
from gpu_worker.scheduler.placement.open_nodes import closed_pools
from gpu_worker.scheduler.policy.projects import Preemption
from gpu_worker.scheduler.state import State


def say_room(state: State, request: Request, now_ms: int) -> tuple[Room, list[str]]:
    """Find why there is no room for a request, and say it: what is kept from it, what is busy, what is drained."""
    if state.slot_catalog.is_yet_to_come(request.entry.shape):
        return Room(is_there=False, reason="", drained=""), [_awaited(state.slot_catalog.awaited, now_ms)]
    if gone := _own_absent(state, request, now_ms):
        return Room(is_there=False, reason="", drained=""), [gone]
    room = _find_room(state, request.entry.shape)
    kept, number = _kept_hot(state, request)
    busy = ""
    if room.busy and not kept:
        busy = _all_busy(request.entry.shape, room.busy) + _slices(room.slices)
    elif room.busy > number:
        busy = "all others are busy"
    parts = (_of_others(state, request), kept, room.reason, busy, room.drained, _own_busy(state, request))
    return room, [part for part in parts if part]


def _awaited(nodes: AwaitedNodes, now_ms: int) -> str:
    """Say that nodes are to come back, and for how long nobody gives them up."""
    assert nodes.until_ms is not None, "they are awaited"
    left = show_duration(max(0, nodes.until_ms - now_ms))
    if len(nodes.names) == 1:
        return f"node {nodes.names[0]}, which was there before the pool was started again, is awaited for {left} more"
    return f"{len(nodes.names)} nodes that were there before the pool was started again are awaited for {left} more"


def _own_absent(state: State, request: Request, now_ms: int) -> str:
    """Say that the node is gone that its user has brought, and that it waits for; empty where one is there."""
    shape, nodes = request.entry.shape, state.own_nodes
    if shape.lane != "own" or any(node.could_hold(shape) for node in nodes.of(request.user)):
        return ""
    gone = nodes.absent_for(request.user, shape)
    left = "" if gone is None else f" and is awaited for {show_duration(max(0, gone.until_ms - now_ms))} more"
    return f"the node that you have brought is not there{left}; the pool has none for this"


def _own_busy(state: State, request: Request) -> str:
    """Say of a request that waits for the pool that it found no room on a node of its user's own either."""
    if request.lane == "own" or not state.own_nodes.of(request.user):
        return ""
    own = shape_of(request, "own", state.qos[request.qos], state.slot_catalog, state.own_nodes)
    able = any(node.holds(own) and not node.is_drained for node in state.own_nodes.of(request.user))
    return "the node that you have brought has no room for it now" if able else ""


def _of_others(state: State, request: Request) -> str:
    """Say in which node pools it may not start now; empty where it may start anywhere."""
    shape = request.entry.shape
    closed = closed_pools(state, request)
    if not closed:
        return ""
    word = name_pools(closed)
    if state.qos[shape.qos].preemption is Preemption.NEVER:
        return f"QoS {shape.qos!r} is never taken back, and starts on nothing that others are guaranteed of {word}"
    return f"what is left of {word} is kept for those who are guaranteed it"


def name_slots(shape: Shape) -> str:
    """Name the slots that it would use, in the plural."""
    on_cpu = shape.lane == "cpu" or (shape.lane == "own" and "cpu" in shape.wants.kind.words)
    return count(2, on_cpu=on_cpu).removeprefix("2 ")


def _find_room(state: State, shape: Shape) -> Room:
    """Find it once for all requests of a shape: there are as many requests as nodes."""
    if shape not in state.estimate_cache.rooms:
        able = [node for node in state.nodes.values() if node.could_hold(shape)]
        capable = [node for node in able if not node.is_drained and node.holds(shape)]
        drained = [
            *_drained([node.name for node in able if node.is_drained]),
            *_soon_drained(state, [node for node in able if not node.is_drained and not node.holds(shape)]),
        ]
        state.estimate_cache.rooms[shape] = _room(state, shape, capable, "; ".join(drained))
    return state.estimate_cache.rooms[shape]


def _room(state: State, shape: Shape, capable: list[Node], drained: str) -> Room:
    if all(node.owner for node in state.nodes.values()) and shape.lane != "own":
        return Room(is_there=False, reason="no node is connected to the pool", drained="")
    if not capable:
        what = count(shape.need, on_cpu=shape.lane == "cpu") if shape.wants == PLAIN else "all that it asks for"
        what = f"just {count(shape.need, on_cpu=shape.lane == 'cpu')}" if shape.wants.is_exclusive else what
        return Room(is_there=False, reason=drained or f"no connected node has {what}", drained="")
    if not any(node.free(shape).slots for node in capable):
        busy = sum(len(node.serving(shape.lane, shape.wants.kind)) for node in capable)
        return Room(is_there=True, reason="", drained=drained, busy=busy, slices=_free_slices(state, shape))
    if shape.wants.is_exclusive:
        reason = f"no node with {count(shape.need, on_cpu=shape.lane == 'cpu')} is free of others"
        return Room(is_there=True, reason=reason, drained=drained)
    reason = f"no node has {shape.need} {name_slots(shape)} free at once" if shape.need > 1 else ""
    if shape.wants.is_more and not any(_has_rest(node, shape) for node in capable):
        reason = "the CPUs or the memory that it asks for are in use"
    return Room(is_there=True, reason=reason, drained=drained)


def _free_slices(state: State, shape: Shape) -> int:
    """Count the slices that are free while a request waits that a slice would serve as well, had it asked for one.

    That is on nodes that have the CPUs and the memory that it asks for, too, and where it is over before a drain.
    """
    asked = shape.wants.kind
    if shape.lane != "gpu" or shape.need > 1 or asked.words or asked.is_slice or shape.wants.is_exclusive:
        return 0
    slices = SlotKind(memory_bytes=asked.memory_bytes, is_slice=True)
    sliced = msgspec.structs.replace(shape, wants=msgspec.structs.replace(shape.wants, kind=slices))
    nodes = [node for node in state.nodes.values() if not node.is_drained and node.holds(sliced)]
    return sum(node.free(sliced).slots for node in nodes if _has_rest(node, sliced))


def _slices(number: int) -> str:
    if not number:
        return ""
    return f" ({'a slice of one is' if number == 1 else f'{number} slices are'} free: --gpu-type MIG)"


def _all_busy(shape: Shape, number: int) -> str:
    if shape.lane == "own":
        return "what it asks for is busy on the node that you have brought, and the pool has none"
    word, of_kind = name_slots(shape), "" if shape.wants.kind == PLAIN.kind else " of this kind"
    return (
        f"the only {word.removesuffix('s')}{of_kind} is busy"
        if number == 1
        else f"all {number} {word}{of_kind} are busy"
    )


def _kept_hot(state: State, request: Request) -> tuple[str, int]:
    """Say how many GPUs projects keep between their cells from those who borrow, as this request does, and count."""
    shape, account = request.entry.shape, state.accounts.of(request.project)
    if not state.accounts.keeps_hot:
        return "", 0
    able = [node for node in state.nodes.values() if node.holds(shape)]
    leases = [(node, state.leases[name]) for node in able for name in node.lanes[shape.lane].hot_leases]
    hot = [lease for node, lease in leases if node.part_of(lease, shape).slots]
    ends = [(until_ms, lease) for lease in hot if (until_ms := kept_from_until_ms(state, lease, account, shape.cost))]
    if not ends:
        return "", 0
    number = sum(state.nodes[lease.agent].part_of(lease, shape).slots for _, lease in ends)
    left = show_duration(min(until_ms for until_ms, _ in ends) - state.accounts.now_ms)
    are, first = ("is", "") if number == 1 else ("are", "the first ")
    amount = count(number, on_cpu=shape.lane == "cpu")
    return f"{amount} {are} kept for people between two cells, {first}for another {left}", number


def _drained(names: list[str]) -> list[str]:
    """Name nodes that could hold the request and are given nothing more."""
    if not names:
        return []
    if len(names) == 1:
        return [f"node {names[0]} is being drained"]
    return [f"{f'nodes {names[0]} and {names[1]}' if len(names) == 2 else f'{len(names)} nodes'} are being drained"]


def _soon_drained(state: State, nodes: list[Node]) -> list[str]:
    """Name nodes that could hold the request, were they not to be drained before it could end."""
    if len(nodes) > 1:
        return [f"{len(nodes)} nodes are to be drained before yours could end"]
    left = [show_duration(state.planned_drains.at_ms[node.agent] - state.accounts.now_ms) for node in nodes]
    return [f"node {nodes[0].name} is drained in {left[0]}, before yours could end"] if nodes else []


def _has_rest(node: Node, shape: Shape) -> bool:
    """Whether a node with a free slot has the CPUs and the memory too."""
    free, wants = node.free(shape), shape.wants
    return free.slots > 0 and wants.cpus <= free.cpus and wants.memory_bytes <= free.memory_bytes
