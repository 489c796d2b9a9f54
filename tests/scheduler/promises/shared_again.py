"""Promise 13: a cell that went for a share is left alone for twice as long each time, and no older one goes instead."""

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.projects import QoS
from tests.scheduler.promises.books import Books, Tenancy


def runs_ms(lease: Tenancy, qos: QoS) -> int:
    """Compute for how long a cell runs before it goes for a share: twice as long each time that it went before."""
    return max(qos.min_runtime_ms, min(30 * 60_000, qos.min_runtime_ms * 2**lease.shared))


def may_share(books: Books, lease: Tenancy, request: ev.RequestSubmitted | None = None) -> bool:
    """Whether a cell may go for a share, as far as it or a later one of its user is not left alone.

    For this request only another one that would do for it counts; for none, any.
    """
    return not any(
        _is_left_alone(books, one)
        and (one is lease or (one.order > lease.order and (request is None or _would_do(books, one, request))))
        for one in books.leases.values()
        if (one.project, one.user) == (lease.project, lease.user)
    )


def _would_do(books: Books, lease: Tenancy, request: ev.RequestSubmitted) -> bool:
    machine = books.machines[lease.agent]
    slots = machine.slots
    if sum(name in slots and books.matches(request, slots[name]) for name in lease.slots) < books.number(request):
        return False
    staying = [one for one in books.on_node(lease.agent) if one is not lease and one.is_using and not one.is_reclaimed]
    has_cpus = request.cpus <= machine.cpus - sum(one.cpus for one in staying)
    return has_cpus and request.memory_bytes <= machine.memory_bytes - sum(one.memory_bytes for one in staying)


def _is_left_alone(books: Books, lease: Tenancy) -> bool:
    qos = books.tree.qos.get(lease.qos)
    if not lease.shared or qos is None:
        return False
    return lease.cell is None or books.now_ms - lease.began_ms < runs_ms(lease, qos)
