"""Wire messages to the scheduler's events, and back. Pure; here durations meet the broker's clock, and only here."""

from collections.abc import Callable, Sequence
from typing import assert_never

from bulletin.codes import LeaseEnd, RefusalCode
from bulletin.ids import CellId, LeaseId, ProjectId, RequestId, SessionId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.budget_requests import list_budgets
from gpu_worker.broker.ledger import CellRecord
from gpu_worker.broker.ledger_notes import printable
from gpu_worker.broker.refusal_advice import how_to_ask, what_groups_have
from gpu_worker.scheduler import actions, events
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.estimates import explain
from gpu_worker.scheduler.exclusive_reasons import NoSuchNode, NotExclusive
from gpu_worker.scheduler.leases.resources import price_of
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import GPU_MILLI


def joined(
    message: wire.Register, owner: UserName, agreed: Callable[[LeaseId, CellId | None], int | None]
) -> events.AgentJoined:
    """Translate an agent's introduction. `owner` is who has brought the node, and no word of the agent's.

    `agreed` knows what cells are charged that began before this broker, in thousandths of a slot. In a place that is
    kept all of them are charged as the one that was heard of last, whichever runs by now.
    """
    return events.AgentJoined(
        agent=message.agent,
        node=message.node,
        slots=tuple(map(_slot, message.slots)),
        held=tuple(
            events.ReportedLease(
                lease=held.lease,
                session=held.session,
                user=held.user,
                project=held.project,
                qos=held.qos,
                slots=held.slots,
                cell=held.cell,
                walltime_ms=held.walltime_ms,
                running_ms=held.running_ms,
                held_ms=held.held_ms,
                cpus=held.cpus,
                memory_bytes=held.memory_bytes,
                charged=None if held.cell is None else agreed(held.lease, None if held.is_kept else held.cell),
                more_ms=held.more_ms,
                is_kept=held.is_kept,
                is_exclusive=held.is_exclusive,
            )
            for held in message.held
        ),
        cpus=message.cpus,
        memory_bytes=message.memory_bytes,
        owner=owner,
    )


def _slot(offer: wire.SlotOffer) -> events.Slot:
    return events.Slot(offer.slot, offer.kind, offer.name, offer.memory_bytes, offer.milli)


def submitted(
    message: wire.Submit, request: RequestId, lease: LeaseId, session: SessionId, user: UserName, project: ProjectId
) -> events.RequestSubmitted:
    """Translate a kernel's request, under the names that the broker gave it."""
    return events.RequestSubmitted(
        request=request,
        lease=lease,
        session=session,
        user=user,
        project=project,
        qos=message.qos,
        gpus=message.gpus,
        walltime_ms=message.walltime_ms,
        gpu_type=message.gpu_type,
        gpu_memory_bytes=message.gpu_memory_bytes,
        cpus=message.cpus,
        memory_bytes=message.memory_bytes,
        is_kept=message.keep_ms > 0,
        is_exclusive=message.is_exclusive,
    )


def queued(request: RequestId, waiting: explain.WaitExplanation, usual_ms: int | None = None) -> wire.Queued:
    """Tell where a request stands, under the kernel's own name for it."""
    return wire.Queued(
        request=request,
        position=waiting.position,
        reason=waiting.reason,
        wait_ms=waiting.wait_ms,
        in_quota=waiting.in_quota,
        usual_ms=usual_ms,
    )


#: The scheduler's reasons to end a lease, as everybody else knows them.
LEASE_ENDS = {
    actions.Why.NODE_LOST: LeaseEnd.NODE_LOST,
    actions.Why.NOT_HELD: LeaseEnd.NOT_HELD,
    actions.Why.SUPERSEDED: LeaseEnd.SUPERSEDED,
}
#: Why a lease ended, in words for its user.
SENTENCES = {
    actions.Why.NODE_LOST: "The node of this notebook was lost: it no longer answers the pool.",
    actions.Why.NOT_HELD: "The pool's agent on the node of this notebook was restarted, and what ran there has ended.",
    actions.Why.SUPERSEDED: "The node that ran your cell was thought lost, and your session went on elsewhere.",
}


def revoked(action: actions.EndLease) -> wire.Revoked:
    """Tell a kernel that its lease is over."""
    return wire.Revoked(lease=action.lease, code=LEASE_ENDS[action.why], sentence=SENTENCES[action.why])


def refused(pending: PendingRequest, refusal: actions.Refuse, accounts: Accounts) -> wire.Refusal:
    """Tell a kernel that its request is refused, and its user only what they can do: also how to ask for more."""
    asked, reason = pending.message, refusal.reason
    if isinstance(reason, actions.RefusedByProject):
        sentence = reason.describe(has_other_projects=pending.person.has_other_projects)
    else:
        sentence = str(reason)
    has_budgets = len(list_budgets(accounts, asked.project or pending.person.project)) > 1
    sentence += how_to_ask(reason, asked.project, has_budgets=has_budgets) + what_groups_have(reason, accounts)
    if refusal.had_own_node:
        sentence += " The node that you have brought could run it, and is gone. Start its agent, then run it again."
    return wire.Refusal(code=_refusal_code(reason), sentence=sentence, request=asked.request)


def _refusal_code(reason: actions.Reason) -> RefusalCode:
    match reason:
        case actions.UnknownQoS():
            return RefusalCode.UNKNOWN_QOS
        case actions.QoSNotAllowed() | NotExclusive():
            return RefusalCode.QOS_NOT_ALLOWED
        case actions.WalltimeTooLong() | actions.TooLongForProject():
            return RefusalCode.WALLTIME_TOO_LONG
        case actions.TooManyGpus() | NoSuchNode():
            return RefusalCode.TOO_MANY_GPUS
        case actions.NoSuchGpu():
            return RefusalCode.NO_SUCH_GPU
        case actions.TooLarge():
            return RefusalCode.TOO_LARGE
        case actions.OverLimit() | actions.OverBudget() | actions.TooManyPerCell():
            return RefusalCode.OVER_LIMIT
        case actions.NeverInQuota():
            return RefusalCode.NEVER_IN_QUOTA
        case actions.QueueFull():
            return RefusalCode.QUEUE_FULL
        case actions.Replaced():
            return RefusalCode.REPLACED
        case _:
            assert_never(reason)


def cancelled(request: RequestId, sentence: str, code: RefusalCode = RefusalCode.CANCELLED) -> wire.Refusal:
    """Tell a kernel that somebody else withdrew its request."""
    return wire.Refusal(code=code, sentence=sentence, request=request)


def record(message: wire.CellDone, node: wire.Register, ended_at_ms: int, prices: Sequence[Price]) -> CellRecord:
    """Record a cell that ended then, by the broker's clock, by its agent's word. The ledger counts attempts.

    It is charged by these prices, unless somebody knows what was agreed. However many slots its agent names, it had no
    more than the node has; one that the node does not have (any more) counts as a whole GPU.
    """
    usage = message.usage
    offers = {offer.slot: offer for offer in node.slots}
    had = tuple(sorted(dict.fromkeys(message.slots), key=lambda slot: slot not in offers))[: len(offers)]
    known = [_slot(offers[slot]) for slot in had if slot in offers]
    unknown_milli = GPU_MILLI * (len(had) - len(known))
    on_gpu = any(slot.kind in ("gpu", "mig") for slot in known)
    return CellRecord(
        cell=message.cell,
        lease=message.lease,
        session=message.session,
        user=message.user,
        project=message.project,
        qos=message.qos,
        node=node.node,
        slots=had,
        kind="gpu" if on_gpu else "cpu",
        milli=unknown_milli + sum(slot.milli for slot in known),
        attempt=0,
        gpus=len(had) if on_gpu else 0,
        started_at_ms=ended_at_ms - usage.held_ms,
        ended_at_ms=ended_at_ms,
        held_ms=usage.held_ms,
        ran_ms=usage.ran_ms,
        outcome=usage.outcome,
        peak_memory_bytes=usage.peak_memory_bytes,
        mean_utilization=usage.mean_utilization,
        bytes_sent=usage.bytes_sent,
        bytes_returned=usage.bytes_returned,
        label=printable(message.label),
        charged_milli=unknown_milli + sum(price_of(slot, slot.milli, prices) for slot in known),
    )
