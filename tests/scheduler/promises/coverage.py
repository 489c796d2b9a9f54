"""What is covered and what is borrowed, by the page's one definition."""

from collections.abc import Iterable

from bulletin.ids import LeaseId, ProjectId
from gpu_worker.scheduler.policy.projects import Preemption
from tests.scheduler.promises.books import Books, Tenancy
from tests.scheduler.promises.tree import Side, Tree


def is_firm(tree: Tree, qos: str) -> bool:
    """Whether cells of the class are covered before others: it never borrows, or is never taken back."""
    known = tree.qos.get(qos)
    return known is not None and (known.must_be_in_quota or known.preemption is Preemption.NEVER)


def covering(books: Books, guaranteed: dict[Side, int]) -> dict[LeaseId, Side]:
    """Find whose guarantee covers each cell that runs or is about to; what is not there is borrowed.

    The innermost side comes first, and covers cells in the order in which they began, those that fit. What never
    borrows or is never taken back comes before others of a project's own users also where only all of it covers that;
    so it does where a project is guaranteed something in class hours alone, and what that is in covers such a cell.
    """
    inside: dict[Side, list[Tenancy]] = {}
    for lease in books.leases.values():
        if lease.is_using:
            for side in books.tree.chain(lease.project):
                inside.setdefault(side, []).append(lease)
    found: dict[LeaseId, Side] = {}

    def cover(leases: Iterable[Tenancy], side: Side, room: int) -> None:
        for lease in leases:
            if lease.lease not in found and lease.cost <= room:
                found[lease.lease] = side
                room -= lease.cost

    def room(side: Side) -> int:
        return guaranteed.get(side, 0) - sum(lease.cost for lease in inside[side] if lease.lease in found)

    for side in sorted(inside, key=lambda side: (-books.tree.depth(side), side.own_users)):
        turn = _in_turn(books.tree, inside[side])
        firm = [lease for lease in turn if is_firm(books.tree, lease.qos)]
        cover(firm, side, room(side))
        if side.own_users and any(lease.lease not in found for lease in firm):  # before others of the side, too
            whole = Side(side.project)
            every = _in_turn(books.tree, [one for one in inside[whole] if is_firm(books.tree, one.qos)])
            before = set(found)
            cover(every, whole, room(whole))
            own = {lease.lease for lease in firm} | before
            found = {name: by for name, by in found.items() if name in own}
        is_paid_for = books.tree.is_paid_for(side.project)
        beyond = {lease.project for lease in firm if is_paid_for and lease.lease not in found}
        cover([lease for lease in turn if lease.project not in beyond], side, room(side))
    return found


def _in_turn(tree: Tree, leases: Iterable[Tenancy]) -> list[Tenancy]:
    return sorted(leases, key=lambda lease: (not is_firm(tree, lease.qos), lease.order))


def covered_by(
    tree: Tree, project: ProjectId, cost: int, used: dict[Side, int], guaranteed: dict[Side, int]
) -> Side | None:
    """Find the innermost side that uses no more than it is guaranteed with so much more; None is: it would borrow."""
    for side in tree.chain(project):
        if used.get(side, 0) + cost <= guaranteed.get(side, 0):
            return side
    return None


def is_borrowed_for(tree: Tree, victim: Tenancy, by: Side | None, claimant: ProjectId, covers: Side | None) -> bool:
    """Whether somebody whose request `covers` has may take the victim's cell, which the guarantee `by` covers.

    Seen from inside the same department, what only the department covers is borrowed.
    """
    if by is None:
        return covers is not None
    if covers is None:
        return False
    shared = [side for side in tree.chain(victim.project) if side in tree.chain(claimant)]
    if not shared or by not in shared:
        return False
    return tree.depth(covers) > tree.depth(by)
