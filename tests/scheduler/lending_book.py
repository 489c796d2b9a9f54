"""What lenders keep for themselves, as the referee reads it: counted afresh from all that is in use."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.scheduler.referee import Referee, Wish

Amounts = dict[tuple[str, ...], int]


def used_by(used: Amounts, name: str) -> int:
    return used.get(("project", name), 0)


def keeps(referee: "Referee", name: str, used: Amounts) -> int:
    """What of a project's unused guarantee others may not use: its own promise, or that of those inside it."""
    limit = referee.project(name).lending_limit_milli
    own = 0 if limit is None else referee.guaranteed(name) - used_by(used, name) - limit
    inside = sum(keeps(referee, one.id, used) for one in referee.settings.projects if one.parent == name)
    return max(0, own, inside)


def leaves_what_is_kept(referee: "Referee", wish: "Wish", used: Amounts) -> bool:
    """Whether enough stays free for the siblings of all those projects that would borrow with it.

    What there is, is the guarantee of the innermost project that it would still be within, or else the pool.
    """
    cost = referee.cost(wish.event)
    if not cost:
        return True
    tops = {referee.path(who[1])[0] for who in used if who[0] == "project"}
    scopes = [(referee.offered() - sum(used_by(used, top) for top in tops), list[int]())]
    names = referee.path(wish.event.project)
    for depth, name in enumerate(names):
        left = referee.guaranteed(name) - used_by(used, name)
        if cost <= left:
            scopes.append((left, []))
            continue
        parent = names[depth - 1] if depth else None
        scopes[-1][1].extend(
            keeps(referee, one.id, used) for one in referee.settings.projects if one.parent == parent and one.id != name
        )
    last = names[-1]
    inside = [one.id for one in referee.settings.projects if one.parent == last]
    rest = referee.guaranteed(last) - sum(map(referee.guaranteed, inside))
    if used_by(used, last) - sum(used_by(used, one) for one in inside) + cost > rest:
        scopes[-1][1].extend(keeps(referee, one, used) for one in inside)
    return all(not sum(kept) or cost + sum(kept) <= room for room, kept in scopes)
