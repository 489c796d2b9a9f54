"""Why a request may not wait, or could never run: by its QoS, its project, or any node that was ever there."""

from collections.abc import Collection

from bulletin.ids import ProjectId, UserName
from bulletin.units import show_size
from gpu_worker.scheduler.actions import (
    NeverInQuota,
    NoSuchGpu,
    OverBudget,
    OverLimit,
    QueueFull,
    Reason,
    TooLarge,
    TooManyGpus,
    UnknownQoS,
    WalltimeTooLong,
)
from gpu_worker.scheduler.admission.cell_rules import (
    forbidden,
    known_qos,
    longest_walltime_ms,
    most_walltime_ms,
    walltime_of,
)
from gpu_worker.scheduler.events import RequestSubmitted
from gpu_worker.scheduler.exclusive_reasons import MixedNode, NoSuchNode
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.resources import Offer, SlotKind, Wants
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.policy.projects import GPU_MILLI
from gpu_worker.scheduler.state import State


def refusal(state: State, event: RequestSubmitted) -> Reason | None:
    """Why the request can never run, or may not wait; None if it may."""
    qos = state.qos.get(event.qos)
    if qos is None:
        return UnknownQoS(event.qos, known_qos(state.accounts, event.project))
    most_ms = most_walltime_ms(state.accounts, event.project, event.user, event.qos)
    if event.walltime_ms is not None and event.walltime_ms > most_ms:
        return WalltimeTooLong(event.qos, event.walltime_ms, most_ms, most_ms > qos.walltime_ms)
    if event.is_exclusive and not event.gpus:
        return NoSuchNode(0, (), False)
    walltime_ms = walltime_of(state.accounts, event)
    shape = state.slot_catalog.shape_asked(event, qos, walltime_ms)
    unheld = never_held(state, event.gpus, event.gpu_type, shape)
    never: Reason | None = (
        (unheld if event.is_exclusive else None)  # else it says how to ask for a node that is not there
        or forbidden(state.accounts, event.project, event.user, qos, shape, walltime_ms)
        or unheld
        or never_allowed(state, event.project, event.user, shape, walltime_ms)
    )
    if never is not None:
        never = _find_never_on_own(state, event, shape, walltime_ms, never)
    if never is not None:
        return never
    queued = state.queued.get((event.user, event.qos), 0)
    if event.session in state.asking:  # it will be replaced
        earlier = state.pending[state.asking[event.session]]
        queued -= (earlier.user, earlier.qos) == (event.user, event.qos)
    # Cells that were reclaimed together ask again together: that their user has so many is none of their doing.
    if queued >= qos.queued_per_user and not state.reclaimed_ages.is_expected(event.session, state.accounts.now_ms):
        return QueueFull(event.qos, qos.queued_per_user)
    return None


def _find_never_on_own(
    state: State, event: RequestSubmitted, shape: Shape, walltime_ms: int, never: Reason
) -> Reason | None:
    """Say why a request that the pool can `never` serve can run nowhere; None where a node of its user's own may.

    Where such a node could, and the rules of the project or the class do not let it, those are why.
    """
    if not state.own_nodes.is_any_of(event.user):
        return never
    qos, has_gpus = state.qos[event.qos], state.slot_catalog.has_gpus
    asked = event.gpus, event.gpu_type, shape.wants, qos, walltime_ms
    own = state.own_nodes.shape_of(event.user, *asked, has_gpus=has_gpus)
    if not state.own_nodes.could_hold(event.user, own):
        return never
    return forbidden(state.accounts, event.project, event.user, qos, own, walltime_ms)


def find_never(state: State, request: Request, shape: Shape) -> Reason | None:
    """Why a request that waits could never run in the pool, of which it asks this; None if it could."""
    reason = never_held(state, request.gpus, request.gpu_type, shape)
    return reason or outdated(state, request, shape)


def outdated(state: State, request: Request, shape: Shape | None = None) -> Reason | None:
    """Why a request that waits can never run with new settings or allowances; None if it can. Its QoS is known.

    It is asked of the shape that it has, or of another one.
    """
    qos, accounts, asked_ms = state.qos[request.qos], state.accounts, request.walltime_ms
    most_ms = most_walltime_ms(accounts, request.project, request.user, request.qos)
    if request.is_walltime_asked and asked_ms > most_ms:
        return WalltimeTooLong(request.qos, asked_ms, most_ms, most_ms > qos.walltime_ms)
    walltime_ms = asked_ms if request.is_walltime_asked else longest_walltime_ms(accounts, request.project, qos)
    shape = shape or request.entry.shape
    never = forbidden(accounts, request.project, request.user, qos, shape, walltime_ms)
    return never or never_allowed(state, request.project, request.user, shape, walltime_ms)


def never_held(
    state: State, gpus: int, gpu_type: str, shape: Shape
) -> TooManyGpus | NoSuchGpu | NoSuchNode | TooLarge | None:
    """Refused if no node that was ever there could hold it. While none was ever seen, nobody can say.

    Nor can they while nodes are to come back that were there before.
    """
    if state.slot_catalog.awaited or not any(state.slot_catalog.largest.values()):
        return None
    return _never_there(gpus, gpu_type, shape, state.slot_catalog.offers[shape.lane])


def no_such_node(state: State, gpus: int) -> NoSuchNode | None:
    """Say that no node, of whatever GPUs, is one that somebody could have alone with so many; None while one may be."""
    qos = next(iter(state.qos.values()))
    shape = state.slot_catalog.shape_of(gpus, "", Wants(is_exclusive=True), qos, qos.walltime_ms)
    never = never_held(state, gpus, "", shape)
    return never if isinstance(never, NoSuchNode) else None


def hopeless(state: State) -> list[tuple[Request, Reason]]:
    """Find who waits and could run nowhere, or never: nodes have shown what a pool has since they came."""
    found = list[tuple[Request, Reason]]()
    for request in state.pending.values():
        shape = request.entry.shape
        if state.own_nodes.is_any_of(request.user) or request.lane == "own":
            continue  # whoever has a node is asked about with that (`own_places`)
        reason: Reason | None = never_held(state, request.gpus, request.gpu_type, shape)
        reason = reason or never_allowed(state, request.project, request.user, shape, request.walltime_ms)
        if reason is not None:
            found.append((request, reason))
    return found


def never_allowed(
    state: State, project: ProjectId, user: UserName, shape: Shape, walltime_ms: int
) -> OverLimit | OverBudget | NeverInQuota | None:
    """Refused if limits and guarantees never let so many run, whatever else runs.

    What it costs, and where it is at home, nobody can say while the nodes that could hold it are to come back.
    """
    catalog = state.slot_catalog
    if catalog.is_yet_to_come(shape):
        return None
    cost, qos, on_cpu = shape.cost, shape.qos, state.slot_catalog.is_on_cpu(shape.lane)
    if not cost:
        return None
    account = state.accounts.of(project)
    limit = state.accounts.allowances.user_limit_milli(account.project, user)
    if limit is not None and cost > limit:
        own_milli = account.project.user_limit_milli
        is_allowance = own_milli is not None and limit > own_milli
        return OverLimit(account.project.id, cost, limit, True, on_cpu, is_allowance)
    for at in account.path:
        if at.highest_limit is not None and cost > at.highest_limit:
            return OverLimit(at.project.id, cost, at.highest_limit, False, on_cpu)
        budget = at.budget
        if budget is not None and not budget.gpu_ms:
            return OverBudget(at.project.id, cost, walltime_ms, 0, budget.period, on_cpu)
        if budget is not None and shape.charged * walltime_ms > budget.gpu_ms * GPU_MILLI:
            dearest = state.slot_catalog.dearest(shape)
            charged = shape.charged if dearest else None
            return OverBudget(at.project.id, cost, walltime_ms, budget.gpu_ms, budget.period, on_cpu, charged, dearest)
        if state.qos[qos].must_be_in_quota and at is account.payer and cost > at.most:
            return NeverInQuota(qos, at.project.id, cost, at.most, on_cpu)
    for at in account.payer.path if state.qos[qos].must_be_in_quota and not catalog.awaited else ():
        never = state.pools.never_there(at, shape)
        if never is not None:
            beside, homes = never
            return NeverInQuota(qos, at.project.id, cost, beside, on_cpu, homes)
    return None


def _never_there(
    gpus: int, gpu_type: str, shape: Shape, offers: Collection[Offer]
) -> TooManyGpus | NoSuchGpu | NoSuchNode | TooLarge | None:
    """Why none of these nodes could hold such a request; None if one could.

    `gpus` and `gpu_type` are as the person asked; `offers` are of the lane of the shape.
    """
    wants, on_cpu = shape.wants, shape.lane == "cpu"
    kind = wants.kind
    slots = [slot for offer in offers for slot, _ in offer.slots]
    of_type = [slot for slot in slots if SlotKind(kind.words, 0, kind.is_slice).serves(slot)]
    if slots and not of_type:
        return NoSuchGpu(gpu_type, tuple(sorted({slot.name for slot in slots})), on_cpu)
    most = max((slot.memory_bytes for slot in of_type), default=0)
    if slots and kind.memory_bytes > most:
        if on_cpu:
            return NoSuchGpu(gpu_type, (), on_cpu)
        return TooLarge("--gpu-memory", show_size(kind.memory_bytes), show_size(most), "GPU")
    wholes = [offer for offer in offers if offer.is_whole(kind, offer.count(kind))]
    sizes = tuple(sorted({offer.count(kind) for offer in wholes}))
    if wants.is_exclusive and shape.need not in sizes:
        return NoSuchNode(gpus, sizes, on_cpu, gpu_type, _mixed(offers, kind, shape.need))
    largest = max((offer.count(kind) for offer in offers), default=0)
    if shape.need > largest:
        with_what = f" of type {gpu_type!r}" if gpu_type else ""
        with_what += f" with {show_size(kind.memory_bytes)}" if kind.memory_bytes else ""
        return TooManyGpus(gpus, largest, on_cpu, with_what)
    cpus = max((offer.cpus for offer in offers), default=0)
    if wants.cpus > cpus:
        return TooLarge("--cpus", _cpus(wants.cpus), _cpus(cpus))
    memory_bytes = max((offer.memory_bytes for offer in offers), default=0)
    if wants.memory_bytes > memory_bytes:
        return TooLarge("--memory", show_size(wants.memory_bytes), show_size(memory_bytes))
    if any(offer.could_hold(shape.need, wants) for offer in offers):
        return None
    return TooLarge("", "", "")


def _mixed(offers: Collection[Offer], kind: SlotKind, need: int) -> MixedNode | None:
    """Find a node with such slots and others that are of no use together, one with as many as are asked for first."""
    mixed = [one for one in offers if one.count(kind) and not one.is_whole(kind, one.count(kind))]
    if not mixed:
        return None
    found = min(mixed, key=lambda one: (one.count(kind) != need, one.count(kind)))
    others = [slot for slot, _ in found.slots if not kind.serves(slot)]
    if any((slot.kind == "mig") is not kind.is_slice for slot in others):
        return MixedNode(found.count(kind), "whole GPUs" if kind.is_slice else "slices of a GPU (MIG)")
    word = "CPU slots" if found.beside and not others else "GPUs of another kind"
    return MixedNode(found.count(kind), word)


def _cpus(number: int) -> str:
    return "1 CPU" if number == 1 else f"{number} CPUs"
