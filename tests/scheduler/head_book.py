"""When the first that waits could start, as the referee reads it: by the walltimes of all that is there."""

from math import inf
from typing import TYPE_CHECKING

from gpu_worker.scheduler import actions as act, events as ev

if TYPE_CHECKING:
    from tests.scheduler.referee import Referee, Tenancy, Wish

LEAVING = ("leaving", "ending", "reclaiming")
MINUTE, HOUR = 60_000, 3_600_000
STEPS = [minutes * MINUTE for minutes in (1, 2, 3, 5, 10, 15, 20, 30, 45)] + [HOUR, 2 * HOUR]
#: One more lease, and until when.
More = tuple["Tenancy", int]


def counted_ms(referee: "Referee", wish: "Wish") -> int:
    """A walltime as the line counts it: the next step, or what the QoS gives."""
    most_ms = referee.qos(wish.event.qos).walltime_ms
    return min((step for step in (*STEPS, most_ms) if wish.walltime_ms <= step <= most_ms), default=wish.walltime_ms)


def over_ms(referee: "Referee", wish: "Wish", walltime_ms: int) -> int:
    """When it is over if it is granted now."""
    return referee.now_ms + referee.settings.start_ms + walltime_ms


def end_ms(referee: "Referee", lease: "Tenancy", *, begins: bool = False) -> int:
    """Until when a lease is there at the latest. What is hot goes at once, unless it begins a cell now."""
    if lease.state == "busy":
        return lease.begun_ms + lease.walltime_ms
    if lease.state == "granted":
        return lease.since_ms + referee.settings.start_ms + lease.walltime_ms
    return referee.now_ms + lease.walltime_ms if lease.state == "hot" and begins else 0


def start_ms(
    referee: "Referee", agent: str, asked: ev.RequestSubmitted, more: More | None = None, *, begins: bool = False
) -> float:
    """When it could start there at the latest, if nobody else came but one more lease."""
    offer = referee.offers[agent]
    here = [(end_ms(referee, one, begins=begins), one) for one in referee.leases.values() if one.agent == agent]
    here += [(more[1], more[0])] if more is not None and more[0].agent == agent else []
    for at_ms in sorted({referee.now_ms, *(end for end, _ in here if end > referee.now_ms)}):
        there = [lease for end, lease in here if end > at_ms]
        free = referee.serving(offer, asked) - {slot for lease in there for slot in lease.slots}
        if (
            len(free) >= max(1, asked.gpus)
            and asked.cpus + sum(lease.cpus for lease in there) <= offer.cpus
            and asked.memory_bytes + sum(lease.memory_bytes for lease in there) <= offer.memory_bytes
        ):
            return at_ms
    return inf


def first_ms(
    referee: "Referee", asked: ev.RequestSubmitted, more: More | None = None, *, begins: bool = False
) -> float:
    """The same on the best node."""
    able = [agent for agent in referee.nodes if agent not in referee.drained and referee.could_hold(agent, asked)]
    return min((start_ms(referee, agent, asked, more, begins=begins) for agent in able), default=inf)


def see_pass(
    referee: "Referee", new: "Tenancy", grant: act.Grant, passed: ev.RequestSubmitted, line: list[ev.RequestSubmitted]
) -> None:
    """The first of those who could use the same, and stand before it, starts no later.

    That must be the head of the line, or one that needs not wait for running cells.
    """
    end = referee.now_ms + referee.settings.start_ms + grant.walltime_ms
    waits = [one for one in line if referee.now_ms < first_ms(referee, one) < inf]
    may = passed not in waits or passed is waits[0]
    assert may, f"{grant.request} passed {passed.request} on a node that can hold it"
    harm = first_ms(referee, passed, (new, 1 << 62)) > first_ms(referee, passed)
    is_in_time = end <= start_ms(referee, grant.agent, passed)
    assert not harm or is_in_time, f"{grant.request} passed {passed.request} and delays it"


def see_first(referee: "Referee", asked: ev.RequestSubmitted) -> None:
    """Nobody who is hot can keep the first in line from starting when it could if they went."""
    best_ms, worst_ms = first_ms(referee, asked), first_ms(referee, asked, begins=True)
    assert worst_ms <= best_ms, f"{asked.request} could start at {best_ms}, and what is hot may delay it to {worst_ms}"


def may_pass(
    referee: "Referee", agent: str, new: "Tenancy", wish: "Wish", rivals: list[ev.RequestSubmitted], waiting: list
) -> bool:
    """Whether it could use a node without harm to the head, where all are alike and wait for running cells."""
    head = next(w.event for w, _ in waiting if any(referee.could_hold(a, w.event) for a in referee.nodes))
    is_simple = all(referee.uses_nothing_special(one.event) for one in referee.wishes.values())
    if rivals[0] is not head or not is_simple or not all(map(referee.is_alike, referee.nodes)):
        return False
    if any(
        referee.would_fit(a, one.event, *LEAVING, "hot") for one, _ in waiting for a in referee.nodes if one != wish
    ):
        return False
    end = over_ms(referee, wish, counted_ms(referee, wish))
    starts = {a: start_ms(referee, a, head) for a in referee.nodes if a not in referee.drained}
    is_first = starts[agent] == min(starts.values())
    return not is_first or start_ms(referee, agent, head, (new, end)) <= starts[agent]
