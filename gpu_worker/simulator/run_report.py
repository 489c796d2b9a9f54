"""What a simulated run comes to, in numbers: waits, use of the GPUs, what it saves, fairness."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from bulletin.errors import BadConfig
from bulletin.units import HOUR_MS, MINUTE_MS
from gpu_worker.quotas import read_quotas
from gpu_worker.scheduler.policy.group_rules import HubGroup
from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings
from gpu_worker.simulator.played_cells import PlayedCell
from gpu_worker.simulator.policies import Policies
from gpu_worker.simulator.reservations import reserved_gpus
from gpu_worker.simulator.simulated_nodes import Delays, NodeFault
from gpu_worker.simulator.simulated_pool import START_MS, SimulatedPool
from gpu_worker.simulator.traces import Trace
from gpu_worker.simulator.waits import (
    HourOfWaits,
    WaitStatistics,
    find_worst_hour,
    histogram,
    passed_by,
    share_of_people,
    share_within,
    wait_statistics,
)

#: After how long an idle notebook is closed by the hubs that the pool is compared with.
CULLED_AFTER_MS = (60 * MINUTE_MS, 30 * MINUTE_MS, 20 * MINUTE_MS)


class CulledNotebooks(msgspec.Struct, frozen=True, kw_only=True):
    """What one GPU per notebook takes where idle notebooks are closed."""

    after_ms: int  #: in which nothing ran
    gpus: int  #: at the worst moment
    gpu_hours: float
    reopened: int  #: how often somebody came back to a notebook that was closed, and found no variables


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one trace on one pool. GPU-hours are exact integrals, shown as numbers of hours."""

    gpus: int
    nodes: int
    cells: int  #: submitted
    returned: int
    cut_at_walltime: int
    refused: int
    lost: int  #: with their node
    still_waiting: int  #: at the end of the run
    still_running: int
    started_hot: int  #: without a request, on GPUs that their session still had
    started_warm: int  #: with their session's memory on the GPU: those, where policies do not let others stay there too
    waited_for_nobody: float  #: the share of all cells that waited no longer than an eviction and a start take
    longest_passed_by: int  #: requests that were submitted after the one that waited longest, and began before it
    waits: WaitStatistics
    worst_hour: HourOfWaits | None  #: None where no hour has enough cells
    people_hindered: float  #: the share of users of whom a cell waited for more than a minute, or never began
    waits_by_project: dict[str, WaitStatistics]
    histogram: tuple[int, ...]  #: cells by their wait, between the edges; one longer than those
    evictions: int  #: hot sessions that had to leave for somebody else
    reclaims: int  #: running cells that were ended for an owner, and ran again
    hours: float  #: from the first notebook's opening to the end of the last lease
    cell_gpu_hours: float  #: GPUs held for a cell, from the grant to the cell's end
    hot_gpu_hours: float  #: GPUs held by hot sessions, which anybody may take, and by those that leave
    reserved_gpu_hours: float  #: one GPU (or as many as it ever needs) per open notebook, if nobody had to wait
    reserved_gpus: int  #: how many GPUs that takes at the worst moment
    culled: tuple[CulledNotebooks, ...]  #: the same, if idle notebooks were closed
    utilization: float  #: the part of the pool's GPU time that cells held
    saved_hours: float  #: the part of the reserved GPU time that no cell held
    saved_hours_strictly: float  #: the part that neither a cell nor a hot session held
    saved_gpus: float  #: the part of the reserved GPUs that the pool does without; below 0 where it has more
    jain_users: float  #: Jain's index over the users' progress
    jain_projects: float  #: the same over projects
    least_progress: float  #: that of the user who fared worst
    gpus_in_use: tuple[float, ...]  #: by cells: the mean of each half hour from the start of the trace
    gpus_leased: tuple[float, ...]  #: the same, with hot sessions
    requests_waiting: tuple[float, ...]  #: the same, of requests


def report(pool: SimulatedPool) -> RunReport:
    """Work out the report of a simulated pool that has been played."""
    played = pool.played
    nodes = pool.nodes
    reserved = reserved_gpus(pool.trace.notebooks)
    first_ms = min((notebook.opened_ms for notebook in pool.trace.notebooks), default=0)
    span_ms = max(1, pool.now_ms - first_ms)
    gpus = sum(nodes.sizes)
    users = _progress(played, lambda one: one.user)
    return RunReport(
        gpus=gpus,
        nodes=len(nodes.sizes),
        cells=len(played),
        returned=sum(one.end == "returned" for one in played),
        cut_at_walltime=sum(one.end == "walltime" for one in played),
        refused=sum(one.end == "refused" for one in played),
        lost=sum(one.end == "lost" for one in played),
        still_waiting=sum(one.started_ms is None and one.end is None for one in played),
        still_running=sum(one.started_ms is not None and one.end is None for one in played),
        started_hot=sum(one.was_hot for one in played),
        started_warm=sum(one.was_warm for one in played),
        waited_for_nobody=share_within(played, nodes.delays.unhindered_ms),
        longest_passed_by=passed_by(played),
        waits=wait_statistics(played),
        worst_hour=find_worst_hour(played, nodes.delays.unhindered_ms),
        people_hindered=share_of_people(played),
        waits_by_project={
            project: wait_statistics([one for one in played if one.project == project])
            for project in sorted({one.project for one in played})
        },
        histogram=histogram(played),
        evictions=nodes.evictions,
        reclaims=nodes.reclaims,
        hours=span_ms / HOUR_MS,
        cell_gpu_hours=nodes.busy.total_ms / HOUR_MS,
        hot_gpu_hours=(nodes.leased.total_ms - nodes.busy.total_ms) / HOUR_MS,
        reserved_gpu_hours=reserved.gpu_ms / HOUR_MS,
        reserved_gpus=reserved.most_at_once,
        culled=tuple(_culled(pool.trace, after_ms) for after_ms in CULLED_AFTER_MS),
        utilization=nodes.busy.total_ms / (gpus * span_ms),
        saved_hours=_saved(nodes.busy.total_ms, reserved.gpu_ms),
        saved_hours_strictly=_saved(nodes.leased.total_ms, reserved.gpu_ms),
        saved_gpus=_saved(gpus, reserved.most_at_once),
        jain_users=jain(users),
        jain_projects=jain(_progress(played, lambda one: one.project)),
        least_progress=min(users, default=1.0),
        gpus_in_use=tuple(nodes.busy.means()),
        gpus_leased=tuple(nodes.leased.means()),
        requests_waiting=tuple(pool.waiting.means()),
    )


def _culled(trace: Trace, after_ms: int) -> CulledNotebooks:
    reserved = reserved_gpus(trace.notebooks, after_ms)
    return CulledNotebooks(
        after_ms=after_ms,
        gpus=reserved.most_at_once,
        gpu_hours=reserved.gpu_ms / HOUR_MS,
        reopened=reserved.reopened,
    )


def simulate(
    trace: Trace,
    sizes: tuple[int, ...],
    settings: SchedulerSettings | None = None,
    delays: Delays | None = None,
    *,
    faults: Sequence[NodeFault] = (),
    policies: Policies | None = None,
    start_ms: int = START_MS,
) -> RunReport:
    """Play a trace on nodes with so many GPUs each, until every notebook is closed, and report."""
    pool = SimulatedPool(trace, sizes, settings, delays, faults=faults, policies=policies, start_ms=start_ms)
    pool.run()
    return report(pool)


def read_settings(path: Path, groups: Iterable[str] = ()) -> SchedulerSettings:
    """Read settings of the scheduler: a quota file, or, where the name ends in .json, a JSON object of their fields.

    `groups` are those of a trace, for which a quota file may have rules. A trace is of no year: class hours are as in
    their term, without a first and a last day, by the clocks of January.

    Raises
    ------
    BadConfig
        If there is no such file, or it is not one.
    """
    if path.suffix != ".json":
        quotas, _ = read_quotas(path)
        settings = msgspec.structs.replace(quotas, reservations=()).settings_for(map(HubGroup, groups))
        return msgspec.structs.replace(settings, projects=tuple(map(_in_term, settings.projects)))
    try:
        content = path.read_bytes()
        unknown = set(msgspec.json.decode(content, type=dict[str, msgspec.Raw])) - set(
            SchedulerSettings.__struct_fields__
        )
        if unknown:
            known = ", ".join(SchedulerSettings.__struct_fields__)
            raise BadConfig(f"{path} sets {', '.join(sorted(unknown))}, which is not known. Known are {known}.")
        return msgspec.json.decode(content, type=SchedulerSettings)
    except OSError as error:
        raise BadConfig(f"The settings {path} cannot be read: {error.strerror}.") from None
    except msgspec.MsgspecError as error:
        raise BadConfig(f"The settings {path} are not understood: {error}.") from None


def _in_term(project: Project) -> Project:
    hours = tuple(msgspec.structs.replace(one, first_day=None, last_day=None) for one in project.class_hours)
    return msgspec.structs.replace(project, class_hours=hours)


def jain(amounts: Sequence[float]) -> float:
    """Compute Jain's index of fairness: 1 where all have the same, 1/n where one of n has everything; of none, 1.

    (Σx)² / (n·Σx²): Jain, Chiu and Hawe, DEC-TR-301, 1984.
    """
    squares = sum(amount * amount for amount in amounts)
    return sum(amounts) ** 2 / (len(amounts) * squares) if squares else 1.0


def _progress(played: Iterable[PlayedCell], of: Callable[[PlayedCell], str]) -> list[float]:
    """Compute for each user or project in what part of the time from its cells' submission to their end they ran."""
    ran: dict[str, int] = {}
    passed: dict[str, int] = {}
    for one in played:
        if one.started_ms is None or one.ended_ms is None:
            continue
        who = of(one)
        ran[who] = ran.get(who, 0) + one.ended_ms - one.started_ms
        passed[who] = passed.get(who, 0) + one.ended_ms - one.submitted_ms
    return [ran[who] / passed[who] if passed[who] else 1.0 for who in ran]


def _saved(used: int, reserved: int) -> float:
    return 1 - used / reserved if reserved else 0.0
