"""Whom a guarantee covers, and from whom they may take, as the page on promises has it: for whole sites, and simple."""

from bulletin.ids import LeaseId
from tests.scheduler.promises.site_books import Asked, Held, Site
from tests.scheduler.promises.tree import Side


def covered_by(site: Site) -> dict[LeaseId, Side | None]:
    """Find which side's guarantee covers each cell that runs; None is borrowed. Node pools count as any GPU here."""
    guaranteed = site.guarantees()
    room = dict(guaranteed)
    found: dict[LeaseId, Side | None] = {}
    running = sorted(((held.order, lease, held) for lease, held in site.held.items() if held.is_busy))
    depth = max((len(site.books.tree.chain(held.asked.event.project)) for _, _, held in running), default=0)
    for level in range(depth, 0, -1):  # the innermost first: chains are as long as sides are deep
        for _, lease, held in running:
            chain = site.books.tree.chain(held.asked.event.project)
            if lease in found or len(chain) < level:
                continue
            sides = chain[len(chain) - level :]
            if room.get(sides[0], 0) >= held.gpus:
                found[lease] = sides[0]
                for side in sides:
                    room[side] = room.get(side, 0) - held.gpus
    return found


def claims(site: Site) -> set[str]:
    """List requests that a guarantee covers and that could have their GPUs on some node, by what is borrowed there."""
    waiting = [one for one in site.waiting.values() if _claim(site, one) is not None]
    if not waiting:
        return set()
    covered = covered_by(site)
    return {f"claim {one.event.request}" for one in waiting if _has_node(site, one, covered)}


def _claim(site: Site, one: Asked) -> Side | None:
    """Find the innermost side that covers the request."""
    guaranteed = site.guarantees()
    chain = site.books.tree.chain(one.event.project)
    return next((side for side in chain if site.used[side] + one.event.gpus <= guaranteed.get(side, 0)), None)


def _has_node(site: Site, one: Asked, covered: dict[LeaseId, Side | None]) -> bool:
    claim = _claim(site, one)
    for node, gpus in site.nodes.items():
        if node in site.closed or one.event.gpu_type not in site.types[node]:
            continue
        kept = sum(
            held.gpus
            for lease, held in site.held.items()
            if held.node == node and held.is_busy and not _may_take(site, one, claim, held, covered.get(lease))
        )
        if gpus - kept >= one.event.gpus:
            return True
    return False


def _may_take(site: Site, one: Asked, claim: Side | None, held: Held, covers: Side | None) -> bool:
    """Whether the cell is borrowed, seen from where the two paths part."""
    mine, other = site.books.tree.chain(one.event.project), site.books.tree.chain(held.asked.event.project)
    below_mine = [side for side in mine if side not in other]
    below_other = [side for side in other if side not in mine]
    return claim in below_mine and covers not in below_other
