"""The pool at this moment, as gauges for Prometheus: line, leases, slots, projects, nodes, what was turned away."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bulletin import __version__
from gpu_worker.broker import reports
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.pool_metrics import MOST_PAIRS, OTHERS
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler.policy.projects import GPU_MILLI

#: So many projects are shown one by one, those of the tree's order first; and so many nodes.
_MOST_PROJECTS, _MOST_NODES = 200, 500
_PAIR = ("project", "qos")


class PoolGauges(Collector):
    """Reads the state when Prometheus asks; changes nothing."""

    def __init__(
        self,
        shell: SchedulerShell,
        agents: Agents,
        now_ms: Callable[[], int],
        started_ms: int,
        counters: Callable[[], Mapping[str, int]],
        unwritten: Callable[[], int],
    ) -> None:
        """Take what counts what was turned away, by kind, and the entries that the ledger has not written yet."""
        self._shell, self._agents, self._now_ms, self._started_ms = shell, agents, now_ms, started_ms
        self._counters, self._unwritten = counters, unwritten

    def collect(self) -> Iterator[Metric]:
        """Draw everything as of now."""
        yield _gauge("info", "The broker's version.", ("version",), {(__version__,): 1})
        yield _gauge(
            "start_time_seconds", "When the broker was started, since 1970.", (), {(): self._started_ms / 1000}
        )
        yield _gauge("ledger_unwritten", "Entries that the ledger has not written yet.", (), {(): self._unwritten()})
        yield from self._line()
        yield from self._leases()
        yield from self._slots()
        yield from self._projects()
        turned_away = CounterMetricFamily(
            "bulletin_turned_away", "What was turned away, or failed in the pool itself, by kind.", labels=["kind"]
        )
        for kind, count in self._counters().items():
            if " at " not in kind:  # what nodes count, by their names
                turned_away.add_metric([kind.replace(" ", "-")], count)
        yield turned_away

    def _line(self) -> Iterator[Metric]:
        state, now_ms = self._shell.scheduler.state, self._now_ms()
        waiting: Counter[tuple[str, ...]] = Counter()
        wanted: Counter[tuple[str, ...]] = Counter()
        oldest: dict[tuple[str, ...], float] = {}
        for request in state.pending.values():
            if request.lane == "own":
                continue  # it waits for nothing of the pool
            pair = (request.home, request.qos)
            pending = self._shell.pending_requests.get(request.id)
            waiting[pair] += 1
            wanted[pair] += request.gpus
            if pending is not None:
                oldest[pair] = max(oldest.get(pair, 0.0), (now_ms - pending.since_ms) / 1000)
        yield _gauge("requests_waiting", "Requests in line.", _PAIR, _merge(waiting))
        yield _gauge("slots_waited_for", "Slots that requests in line ask for.", _PAIR, _merge(wanted))
        yield _gauge("oldest_wait_seconds", "The longest wait of a request in line.", _PAIR, _merge(oldest, max))

    def _leases(self) -> Iterator[Metric]:
        state = self._shell.scheduler.state
        leases: Counter[tuple[str, ...]] = Counter()
        for lease in state.leases.values():
            leases[lease.home, lease.qos, reports.lease_state(lease)] += 1
        yield _gauge("leases", "Leases, by what they do.", (*_PAIR, "state"), _merge(leases))

    def _slots(self) -> Iterator[Metric]:
        state = self._shell.scheduler.state
        counts: dict[tuple[str, ...], float] = {}
        for node in [one for one in state.nodes.values() if not one.owner][:_MOST_NODES]:
            for lane in node.lanes.values():
                if not lane.capacity:
                    continue
                free = "drained" if node.is_drained else "free"
                busy = lane.capacity - lane.free - lane.hot - lane.leaving
                for word, count in ((free, lane.free), ("busy", busy), ("hot", lane.hot), ("leaving", lane.leaving)):
                    counts[node.name, word] = counts.get((node.name, word), 0) + count
        yield _gauge("slots", "Slots of each node, by their state.", ("node", "state"), counts)
        absent: dict[tuple[str, ...], float] = {(one.node,): 1.0 for one in self._agents.absent_nodes[:_MOST_NODES]}
        yield _gauge("node_absent", "Nodes that should be there and are not.", ("node",), absent)
        of_pool = [agent for agent in self._agents.known.values() if not agent.owner]
        yield _gauge("nodes", "Nodes that are there.", (), {(): len(of_pool)})
        missing: Counter[tuple[str, ...]] = Counter()
        for agent in of_pool:
            missing.update((word,) for word in set(agent.message.missing_protections))
        yield _gauge("nodes_without_protection", "Nodes that cannot give cells a protection.", ("protection",), missing)

    def _projects(self) -> Iterator[Metric]:
        state = self._shell.scheduler.state
        amounts: dict[tuple[str, ...], float] = {}
        left: dict[tuple[str, ...], float] = {}
        for number, account in enumerate(reports.tree(state)):
            if number == _MOST_PROJECTS:
                break
            row = reports.project(account, state)
            parts = {"used": row.used_milli, "held": row.held_milli, "guaranteed": row.guaranteed_milli}
            if row.limit_milli is not None:
                parts["limit"] = row.limit_milli
            for word, milli in parts.items():
                amounts[row.project, word] = milli / GPU_MILLI
            if row.budget_left_ms is not None:
                left[(row.project,)] = row.budget_left_ms / 1000
        text = "What a project uses, holds, is guaranteed and may use at most, in slots."
        yield _gauge("project_slots", text, ("project", "amount"), amounts)
        yield _gauge("project_budget_left_seconds", "What is left of a project's budget.", ("project",), left)


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]) -> Metric:
    family = GaugeMetricFamily(f"bulletin_{name}", text, labels=labels)
    for words, value in values.items():
        family.add_metric(words, value)
    return family


def _merge(
    values: Mapping[tuple[str, ...], float], together: Callable[[float, float], float] = lambda one, other: one + other
) -> dict[tuple[str, ...], float]:
    """Keep so many pairs of project and class of service apart; what the others have is one."""
    pairs = sorted({words[:2] for words in values})
    kept = set(pairs[:MOST_PAIRS])
    merged: dict[tuple[str, ...], float] = {}
    for words, value in values.items():
        name = words if words[:2] in kept else (OTHERS, OTHERS, *words[2:])
        merged[name] = together(merged[name], value) if name in merged else value
    return merged
