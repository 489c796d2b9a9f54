"""What it costs that sessions are kept apart: to start one, to end it, and a cell after which it stood still; in turn.

    python benchmarks/session_start.py [--times N] [--preload MODULES]

From the request to the zygote until the executor says that it is ready, and from hanging up until the agent is told
that it is gone, plain and with namespaces and a cgroup of its own. Then an empty cell, in an executor that stands still
before it and in one that does not. Each row: medians in ms, and the median and the quartiles of the difference within
a pair: what else the machine does meets both alike. It needs root, and cgroups of version 2.
"""

import argparse
import itertools
import os
import statistics
import time
from collections.abc import Callable

from bulletin.ids import AgentId, LeaseId
from bulletin.wire.messages import Namespaces
from gpu_worker.agent.cgroups import CgroupTree, LeaseCgroup, find_base
from gpu_worker.agent.node_protections import find_namespace_problem
from tests.conformance.agent_side import Agent, Session


def taken_ms(action: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - began)


class Starts:
    """Starts and ends sessions of one zygote."""

    def __init__(self, agent: Agent, tree: CgroupTree) -> None:
        self._agent, self._tree, self._names = agent, tree, itertools.count()

    def start(self, *, apart: bool) -> Session:
        """Start one, as an agent does."""
        if not apart:
            return self._agent.fork()
        cgroup = self._tree.create(LeaseId(str(next(self._names))))
        cgroup.limit(memory_bytes=2**30, processes=4096, weight=100)
        private = Namespaces(scratch_bytes=2**30)
        return self._agent.fork(namespaces=private, processes=4096, cgroup=cgroup)

    def start_and_end(self, *, apart: bool) -> tuple[float, float]:
        """How long each takes, in ms."""
        sessions: list[Session] = []
        start_ms = taken_ms(lambda: sessions.append(self.start(apart=apart)))

        def end() -> None:
            sessions[0].close()
            self._agent.exit_status(sessions[0].pid)
            self._tree.remove_ended(())

        return start_ms, taken_ms(end)


def show(name: str, before: list[float], after: list[float]) -> None:
    """Print a row."""
    low, middle, high = statistics.quantiles([b - a for a, b in zip(before, after, strict=True)], n=4)
    print(
        f"{name}: {statistics.median(before):.1f} ms and {statistics.median(after):.1f} ms; "
        f"{middle:+.1f} ms in the same pair ({low:+.1f} to {high:+.1f}), {len(before)} pairs"
    )


def cells_ms(session: Session, cgroup: LeaseCgroup, times: int) -> tuple[list[float], list[float]]:
    """Run empty cells in one executor, each second one after it stood still."""
    awake, frozen = [], []
    for _ in range(times):
        awake.append(taken_ms(lambda: session.run("pass")))
        cgroup.set_frozen(frozen=True)
        while not cgroup.is_frozen:
            pass

        def thaw_and_run() -> None:
            cgroup.set_frozen(frozen=False)
            session.run("pass")

        frozen.append(taken_ms(thaw_and_run))
    return awake, frozen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--preload", default="numpy,pandas,matplotlib.pyplot")
    arguments = parser.parse_args()
    problem = find_namespace_problem()
    if problem:
        raise SystemExit(f"no namespaces here: {problem}")
    tree = CgroupTree(find_base(), AgentId(f"benchmark-{os.getpid()}"))
    agent = Agent(preload=arguments.preload)
    try:
        starts = Starts(agent, tree)
        for apart in (False, True):
            starts.start_and_end(apart=apart)
        pairs = [(starts.start_and_end(apart=False), starts.start_and_end(apart=True)) for _ in range(arguments.times)]
        for number, part in enumerate(("start, plain and kept apart", "end, plain and kept apart")):
            show(part, [pair[0][number] for pair in pairs], [pair[1][number] for pair in pairs])
        cgroup = tree.create(LeaseId("cells"))
        session = agent.fork(cgroup=cgroup)
        show(
            "an empty cell, after the executor waited and after it stood still",
            *cells_ms(session, cgroup, arguments.times),
        )
        session.close()
        agent.exit_status(session.pid)
    finally:
        agent.close()
        tree.close()


if __name__ == "__main__":
    main()
