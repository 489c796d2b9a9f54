"""What lending limits keep from whoever borrows, and from how much."""

from bulletin.ids import ProjectId
from gpu_worker.scheduler.policy.projects import GPU_MILLI
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View, once


@once
def kept_from(view: View, project: ProjectId, covers: Side | None) -> int:
    """Compute what others keep from a request of the project which that guarantee covers."""
    chain = view.tree.chain(project)
    path = {side.project for side in chain}
    total = 0
    for side in chain:
        if side == covers:
            return total
        known = view.tree.projects.get(side.project)
        parent = side.project if side.own_users else known.parent if known else None
        siblings = view.tree.children.get(parent, ())
        total += sum(_keeps(view, name) for name in siblings if name not in path)
    return total


def is_lent(view: View, project: ProjectId, cost: int, covers: Side | None, *, soon: bool) -> bool:
    """Whether so much more leaves free what others keep: of the guarantee that covers it, or of all that is free.

    Whoever is being taken back uses nothing `soon`, and what is kept then counts in whole GPUs.
    """
    for by in (covers, None):
        kept = kept_from(view, project, by)
        kept -= kept % GPU_MILLI if soon else 0
        if not kept or room_for(view, project, by, soon=soon) - cost >= kept:
            return True
    return False


def room_for(view: View, project: ProjectId, covers: Side | None, *, soon: bool) -> int:
    """Compute how much of the pool nobody uses: of the guarantee that covers the request, if one does.

    Whoever is being taken back uses nothing `soon`.
    """
    staying = [lease for lease in view.books.leases.values() if lease.is_using and not (soon and lease.is_reclaimed)]
    room = view.there - sum(lease.cost for lease in staying)
    if covers is None:
        return room
    return min(room, view.guaranteed.get(covers, 0) - view.used.get(covers, 0))


@once
def _keeps(view: View, name: ProjectId) -> int:
    """Compute what a project keeps, with all inside it: those have it at once, whatever others use of its guarantee."""
    side = Side(name)
    project = view.tree.projects[name]
    inside = sum(_keeps(view, child) for child in view.tree.children.get(name, ()))
    unused = max(0, view.guaranteed.get(side, 0) - view.used.get(side, 0))
    own = 0 if project.lending_limit_milli is None else max(0, unused - project.lending_limit_milli)
    return max(own, inside)
