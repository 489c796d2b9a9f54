# settings and histories in one line each
"""Histories in few words: pools of two types, quota files as text, crowds, and what people saw of them."""

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from bulletin.ids import AgentId, LeaseId, RequestId, SlotId
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import crowd
from tests.scheduler.promises.played import quotas
from tests.scheduler.promises.seen import HOUR_S, Seen, at, nodes, notebook, see

H100, L4 = "NVIDIA H100 80GB HBM3", "NVIDIA L4"


NINE_MS = 1_760_000_400_000  # Thursday, 2025-10-09 09:00 UTC


LONG_S = 11 * HOUR_S
#: How long kernels take to ask again that hear their agent all the time: longer than any history.
NEVER_MS = 10**12

POOL = '[node_pools.h100]\ngpu = "H100"\n'


def reserve(name: str, project: str, gpus: float, begin: str, end: str, *users: str) -> str:
    who = f"users = {list(users)}\n".replace("'", '"') if users else ""
    return (
        f'[reservations.{name}]\nproject = "{project}"\n{who}gpus = {gpus}\nfrom = "2025-10-09T{begin}"\n'
        f'until = "2025-10-09T{end}"\ntime_zone = "UTC"\n'
    )


def look(
    settings: SchedulerSettings, *happenings: object, last: float, but: Collection[int] = (), **delays: int
) -> Seen:
    """Play from nine on; kernels ask again within a second."""
    all_delays = hi.Delays(**({"ask_again_ms": 1000} | delays))
    return see(settings, *happenings, last=last, but=but, begin_ms=NINE_MS, delays=all_delays)  # type: ignore[arg-type]


def batch(second: float, number: int, project: str, name: str = "", user: str = "", **more: object) -> list[hi.At]:
    """So many notebooks with a batch cell of eleven hours each, of one user or of one each."""
    names = [f"{name or project}{n}" for n in range(number)]
    more = {"qos": "batch"} | more
    return [at(second, notebook(one, project, LONG_S, user=user or one, **more)) for one in names]


def on_one_node(gpus: int, *happenings: list[hi.At] | hi.At, text: str = "", last: float = 2000) -> Seen:
    """Play on a node of so many GPUs."""
    return look(quotas(text), nodes(1, gpus), *happenings, last=last)


def join(fast: int = 4, slow: int = 4) -> list[hi.At]:
    return [
        at(0, hi.Joins(AgentId("fast"), hi.gpus(fast, H100))),
        at(0, hi.Joins(AgentId("slow"), hi.gpus(slow, L4))),
    ]


def mixed(fast: int = 1, slow: int = 1, name: str = "both") -> hi.At:
    """A node that has H100 and L4, there from the beginning."""
    types = (("fast", fast, H100, 80), ("slow", slow, L4, 24))
    slots = [
        msgspec.structs.replace(slot, id=SlotId(f"{kind}{index}"))
        for kind, number, gpu, memory in types
        for index, slot in enumerate(hi.gpus(number, gpu, memory * hi.GB))
    ]
    return at(0, hi.Joins(AgentId(name), tuple(slots)))


def ask(second: float, number: int, project: str, *runs: float, name: str = "", **more: object) -> list[hi.At]:
    return [at(second, one) for one in crowd(number, project, *runs, name=name, **more)]


def waits(seen: Seen, prefix: str) -> list[float]:
    return sorted(seen.wait(session) for session in seen.opened if session.startswith(prefix))


def running(seen: Seen, second: float, prefix: str) -> int:
    """How many GPUs sessions of this prefix run on then."""
    now = [found for when, found in seen.running() if when <= second][-1]
    return sum(gpus for session, gpus in now.items() if session.startswith(prefix))


def left(seen: Seen, prefix: str) -> int:
    """Count how many running cells were taken back."""
    return sum(
        isinstance(action, act.Reclaim | act.Pause) and seen.held[action.lease][0].startswith(prefix)
        for _, _, actions in seen.log
        for action in actions
    )


def places(seen: Seen, prefix: str) -> list[str]:
    return [
        action.agent
        for _, _, actions in seen.log
        for action in actions
        if isinstance(action, act.Grant) and action.session.startswith(prefix)
    ]


LONG = {"qos": "batch"}


BATCH_S = 5 * HOUR_S


NESTED = POOL + (
    "[projects.science]\nguaranteed = 6\nnode_pools = { h100 = 4 }\n"
    '[projects.lab]\nparent = "science"\nguaranteed = 2\nnode_pools = { h100 = 2 }\n'
    '[projects.group]\nparent = "science"\n'
    "[projects.course]\nguaranteed = 2\n"
)


#: Two projects that own a node each, and a course.
TWO_OWNERS = POOL + (
    '[node_pools.l4]\ngpu = "L4"\n'
    "[projects.a]\nnode_pools = { h100 = 3 }\n[projects.b]\nnode_pools = { l4 = 3 }\n"
    "[projects.course]\nguaranteed = 2\n"
)


LENDING = POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\nlending_limit = 1\n"


def priced(budget: str, more: str = "", prices: str = "H100 = 4.0\nL4 = 0.5\n") -> SchedulerSettings:
    return quotas(f'[projects.club]\nbudget = "{budget} GPU-hours per day"\n{more}[prices]\n{prices}')


def charged(seen: Seen, project: str, prices: dict[str, float]) -> float:
    """GPU-hours at their price, of cells as they ran; without any refund."""
    node = {
        a.lease: (a.agent, len(a.slots), a.session) for _, _, acts in seen.log for a in acts if isinstance(a, act.Grant)
    }
    since: dict[str, float] = {}
    total = 0.0
    for when, event, _ in seen.log:
        if isinstance(event, ev.CellStarted):
            since[event.lease] = when
        elif isinstance(event, ev.CellEnded | ev.LeaseEnded) and event.lease in since:
            agent, gpus, session = node[event.lease]
            if seen.opened[session].project == project:
                total += (when - since[event.lease]) * gpus * prices[agent]
            since.pop(event.lease)
    for lease, begin in since.items():
        agent, gpus, session = node[lease]
        if seen.opened[session].project == project:
            total += (seen.log[-1][0] - begin) * gpus * prices[agent]
    return total / 3600


#: Who waits, as they asked; and which leases there are, as they were granted.
Waiting = dict[RequestId, ev.RequestSubmitted]
Running = dict[LeaseId, act.Grant]


def steps(seen: Seen) -> Iterator[tuple[float, Waiting, Running, set[LeaseId]]]:
    """Walk: before each step the time, who waits, which leases there are, and on which of them a cell runs."""
    waiting: Waiting = {}
    there: Running = {}
    busy: set[LeaseId] = set()
    for when, event, actions in seen.log:
        yield when, dict(waiting), dict(there), set(busy)
        match event:
            case ev.RequestSubmitted():
                waiting[event.request] = event
            case ev.RequestWithdrawn():
                waiting.pop(event.request, None)
            case ev.CellStarted():
                busy.add(event.lease)
            case ev.CellEnded():
                busy.discard(event.lease)
            case ev.LeaseEnded():
                busy.discard(event.lease)
                there.pop(event.lease, None)
        for action in actions:
            if isinstance(action, act.Grant):
                waiting.pop(action.request, None)
                there[action.lease] = action
                busy.add(action.lease)
            elif isinstance(action, act.Refuse):
                waiting.pop(action.request, None)


def longest_s(seen: Seen, what: Callable[[float, Waiting, Running, set[LeaseId]], Iterable[str]]) -> float:
    """Find for how many seconds at most anything was so: `what` names all that is so, after each step."""
    since: dict[str, float] = {}
    longest = 0.0
    for when, waiting, there, busy in steps(seen):
        longest = max([longest, *(when - begin for begin in since.values())])
        since = {name: since.get(name, when) for name in what(when, waiting, there, busy)}
    return longest


def owed_too_long(seen: Seen, owed: dict[str, tuple[tuple[str, ...], int]]) -> float:
    """Find for how many seconds a project at most waited for an H100 and used fewer of them than it is owed."""

    def lacking(when: float, waiting: Waiting, there: Running, busy: set[LeaseId]) -> Iterator[str]:
        for name, (leaves, gpus) in owed.items():
            wants = any(r.project in leaves and r.gpu_type == "H100" for r in waiting.values())
            at_home = (there[l] for l in busy if l in there and there[l].agent == "fast")
            if wants and sum(seen.opened[grant.session].project in leaves for grant in at_home) < gpus:
                yield name

    return longest_s(seen, lacking)


def reserved_debt(seen: Seen, user: str, gpus: int, first: float, last: float) -> float:
    """Find for how many seconds at most, between these, a user waited for any GPU and used fewer than are reserved."""

    def lacking(when: float, waiting: Waiting, there: Running, busy: set[LeaseId]) -> Iterator[str]:
        used = sum(seen.opened[there[l].session].user == user for l in busy if l in there)
        wants = any(r.user == user and not r.gpu_type for r in waiting.values())
        if first <= when < last and used < gpus and wants:
            yield user

    return longest_s(seen, lacking)


def idles(seen: Seen, there_are: dict[str, tuple[int, str]], keeps: str) -> float:
    """Find for how long a GPU ran nothing and was not kept while a request waited that fits it. All are of one GPU."""

    def idling(when: float, waiting: Waiting, there: Running, busy: set[LeaseId]) -> Iterator[str]:
        for agent, (gpus, name) in there_are.items():
            kept = sum(
                g.agent == agent and (l in busy or seen.opened[g.session].project == keeps) for l, g in there.items()
            )
            if kept < gpus and any(r.gpu_type in name for r in waiting.values()):
                yield agent

    return longest_s(seen, idling)


def taken_by_guarantee(seen: Seen, after: float) -> list[float]:
    """List the times, in seconds, after this one at which a cell was taken back for somebody's guarantee."""
    return [
        when
        for when, _, actions in seen.log
        for one in actions
        if isinstance(one, act.Reclaim) and when > after and one.right is act.Right.GUARANTEE
    ]
