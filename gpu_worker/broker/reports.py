"""What the scheduler knows, in the rows that people are shown. Reads the state, changes nothing; knows no person."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from bulletin.ids import AgentId, UserName
from bulletin.wire import console
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.estimates import explain
from gpu_worker.scheduler.estimates.window_words import show_class_hours
from gpu_worker.scheduler.leases.leases import USING, Lease, Request
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import LANES
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.policy.projects import GPU_MILLI
from gpu_worker.scheduler.state import State

_STATES: dict[Phase, Literal["granted", "busy", "reclaiming", "hot"]] = {
    Phase.GRANTED: "granted",
    Phase.BUSY: "busy",
    Phase.RECLAIMING: "reclaiming",
    Phase.HOT: "hot",
}


def in_line(state: State) -> list[Request]:
    """List the requests that wait: first those whose place in line is known, in its order, then by who asked first."""
    positions = {request: position for lane in LANES for request, position in explain.standings(state, lane).items()}
    return sorted(state.pending.values(), key=lambda one: (positions.get(one.id, len(positions)), one.entry.key.seq))


def is_in_sight(request: Request, user: UserName) -> bool:
    """Whether a request is in the line that a user sees: what waits for a node of somebody's own is for that one."""
    return request.lane != "own" or request.user == user


def waiting(
    request: Request, known: explain.WaitExplanation, *, waited_ms: int, usual_ms: int | None, label: str
) -> console.WaitingRow:
    """Make the row of a request that waits, with what is known of its wait."""
    return console.WaitingRow(
        lease=request.lease,
        position=known.position,
        user=request.user,
        project=request.home,
        qos=request.qos,
        gpus=request.gpus,
        walltime_ms=request.walltime_ms,
        waited_ms=waited_ms,
        reason=known.reason,
        wait_ms=known.wait_ms,
        usual_ms=usual_ms,
        in_quota=known.in_quota,
        label=label,
    )


def running(state: State, lease: Lease, now_ms: int, *, is_in_quota: bool) -> console.RunningRow:
    """Make the row of a lease, whatever it is doing."""
    node = state.nodes[lease.agent]
    return console.RunningRow(
        lease=lease.id,
        cell=lease.cell,
        user=lease.user,
        project=lease.home,
        qos=lease.qos,
        node=node.name,
        slots=lease.slots,
        state=lease_state(lease),
        for_ms=max(0, now_ms - lease.since_ms),
        walltime_ms=lease.cell_walltime_ms,
        in_quota=is_in_quota if lease.phase in USING else None,
        is_exclusive=lease.is_exclusive,
    )


def lease_state(lease: Lease) -> Literal["granted", "busy", "reclaiming", "hot", "leaving"]:
    """Name what a lease is doing."""
    return _STATES.get(lease.phase, "leaving")


def project(account: Account, state: State) -> console.ProjectRow:
    """Make the row of a project."""
    now_ms = state.accounts.now_ms
    row = console.ProjectRow(
        project=account.project.id,
        parent=account.parent.project.id if account.parent is not None else None,
        used_milli=account.used,
        held_milli=account.held,
        guaranteed_milli=account.guaranteed,
        limit_milli=account.limit,
        waiting=sum(account.waiting.values()),
        borrows_in_ms=max(0, account.back_off_until_ms - now_ms),
        credits_ms=account.trader.credits(now_ms).balance,
        class_hours=show_class_hours(account, now_ms),
        node_pools=tuple(
            console.PoolUse(name=name, used_milli=there.used, guaranteed_milli=there.guaranteed)
            for name, accounts in state.pools.together()
            if (there := accounts.of(account.project.id)).guaranteed or there.promised
        ),
        leads=account.project.leads,
        rule=account.project.rule,
        promised_milli=account.promised if account.promised > account.guaranteed else None,
    )
    budget, left = account.budget, account.left(now_ms)
    if budget is None or left is None:
        return row
    return msgspec.structs.replace(
        row,
        budget_ms=budget.gpu_ms,
        budget_left_ms=left // GPU_MILLI,
        period=budget.period,
        period_ends_ms=account.period_ends_ms - now_ms,
    )


def tree(state: State) -> Iterator[Account]:
    """Walk through all projects, each behind the one that it is in; siblings by their names.

    A reservation for users is one of them until it is over.
    """
    now_ms = state.accounts.now_ms
    waiting = sorted(state.accounts.top.values(), key=lambda one: one.project.id, reverse=True)
    while waiting:
        account = waiting.pop()
        if not account.project.users or not all(one.is_over(now_ms) for one in account.project.windows):
            yield account
        waiting += sorted(account.children.values(), key=lambda one: one.project.id, reverse=True)


def nodes(state: State, request: Request, why_drained: Callable[[AgentId], str]) -> Iterator[console.NodeRow]:
    """Make a row of each node that has slots of the lane that the request is in: GPUs or CPU slots."""
    for node in state.nodes.values():
        if node.lanes[request.lane].capacity and node.owner in ("", request.user):
            yield _node(state, node, request, why_drained(node.agent))


def _node(state: State, node: Node, request: Request, why_drained: str) -> console.NodeRow:
    counts, at_ms = node.lanes[request.lane], state.planned_drains.at_ms.get(node.agent)
    return console.NodeRow(
        node=node.name,
        capacity=counts.capacity,
        free=counts.free,
        busy=counts.capacity - counts.free - counts.hot - counts.leaving,
        hot=counts.hot,
        leaving=counts.leaving,
        is_drained=node.is_drained,
        is_large_enough=node.could_hold(request.entry.shape),
        drains_in_ms=None if at_ms is None else max(0, at_ms - state.accounts.now_ms),
        why_drained=why_drained,
    )


def ended(row: dict[str, Any]) -> console.EndedRow:
    """Turn a row of the ledger's cells into that of a report."""
    fields = {name: row[name] for name in console.EndedRow.__struct_fields__ if name in row}
    if row["charged_milli"] not in (None, row["milli"]):
        fields["charged_ms"] = (row["held_ms"] - row["refunded_ms"]) * row["charged_milli"] // GPU_MILLI
    fields["slots"] = msgspec.json.decode(fields["slots"])
    return msgspec.convert(fields, console.EndedRow)
