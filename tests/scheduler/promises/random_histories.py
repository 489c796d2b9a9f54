"""Histories by seed: many kinds of pools, people and faults. The same seed is the same history on every machine."""

import random
from collections.abc import Sequence
from typing import Literal

import msgspec

from bulletin.ids import AgentId, ProjectId, SessionId, SlotId, UserName
from bulletin.units import DAY_MS, HOUR_MS, MINUTE_MS
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.class_hours import ClassHours, Zone
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, Budget, Preemption, Project, QoS, SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.random_whole_nodes import ask_for_nodes, let_classes

#: Monday, 6 October 2025, 9:00 UTC.
_MONDAY_9_MS = 1_759_741_200_000


#: Histories from this seed on have changes by hand, too.
BY_HAND = 100_000
#: From this one on admins plan that nodes are drained, too.
DRAINS = 200_000
#: From this one on most pools have GPUs of several types, and some nodes have both.
MIXED = 300_000
#: From this one on notebooks keep places, and users are granted more than their rules give.
KEPT = 1_000_000
#: From this one on some ask for nodes that nobody else is on, and are granted them.
ALONE = 3_000_000


def random_history(seed: int) -> hi.History:
    """Make up one history."""
    return _Author(seed).write()


class _Author:
    """Draws all that a history says, in one order."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)

    def write(self) -> hi.History:
        draw = self.random
        self.pool = draw.choice(("plain", "plain", "plain", "plain", "types", "mig", "cpu", "cpus"))
        if self.seed >= MIXED:
            self.pool = draw.choice((self.pool, "types", "types"))
        self.until_ms = draw.choice((20, 40, 90, 240)) * MINUTE_MS
        self.has_faults = draw.random() < 0.4
        joins = self._joins()
        there = sum(slot.milli for join in joins for slot in join.slots if slot.kind != "cpu" or self.pool == "cpu")
        settings = self._settings(there // 1000)
        happenings = [hi.At(draw.randrange(1000) if index else 0, join) for index, join in enumerate(joins)]
        happenings += self._people(settings, there // 1000, joins)
        if self.has_faults:
            happenings += self._faults(settings, joins, there // 1000)
        happenings += [
            hi.At(self._moment(), hi.AsksAgain(SessionId(f"s{draw.randrange(20)}"))) for _ in range(draw.randrange(6))
        ]
        happenings += [hi.At(self._moment(), hi.TicksEarly()) for _ in range(draw.randrange(20))]
        if self.seed >= BY_HAND:
            happenings += self._by_hand()
        if self.seed >= DRAINS:
            happenings += self._drains(joins)
        if self.seed >= KEPT:
            settings = self._with_rules(settings)
            happenings = [self._with_keep(settings, at) for at in happenings]
            happenings += self._allowances(settings, happenings)
        if self.seed >= ALONE:
            settings = let_classes(draw, settings)
            happenings = ask_for_nodes(draw, settings, happenings, joins)
        happenings.sort(key=lambda at: at.ms)
        return hi.History(
            seed=self.seed,
            begin_ms=_MONDAY_9_MS + draw.randrange(7 * 24) * HOUR_MS + draw.randrange(60) * MINUTE_MS,
            until_ms=self.until_ms,
            settings=settings,
            delays=self._delays(),
            happenings=tuple(happenings),
        )

    def _with_rules(self, settings: SchedulerSettings) -> SchedulerSettings:
        """Draw rules for single cells, from which somebody may be excepted, and classes that keep places."""
        draw = self.random
        projects = [
            msgspec.structs.replace(
                project,
                gpus_per_cell=draw.choice((None, None, None, 1, 2)),
                walltime_ms=draw.choice((None, None, None, 10 * MINUTE_MS, HOUR_MS)),
            )
            for project in settings.projects
        ]
        changed = []
        for qos in settings.qos:
            never_borrows = qos.must_be_in_quota or draw.random() < 0.15
            preemption = draw.choice((qos.preemption, Preemption.REQUEUE)) if never_borrows else qos.preemption
            walltime_ms = draw.choice((qos.walltime_ms, 10 * MINUTE_MS, 30 * MINUTE_MS)) if never_borrows else None
            changed.append(
                msgspec.structs.replace(
                    qos,
                    must_be_in_quota=never_borrows,
                    preemption=preemption,
                    walltime_ms=walltime_ms or qos.walltime_ms,
                    gpus_per_cell=draw.choice((None, None, None, 1)),
                )
            )
        return msgspec.structs.replace(settings, projects=tuple(projects), qos=tuple(changed))

    def _with_keep(self, settings: SchedulerSettings, at: hi.At) -> hi.At:
        """Draw whether a notebook keeps its place: only in a class that never borrows."""
        draw = self.random
        if isinstance(at.what, hi.Changes):
            return msgspec.structs.replace(at, what=hi.Changes(self._with_rules(at.what.settings)))
        if not isinstance(at.what, hi.Opens):
            return at
        opened = at.what
        firm = [one.name for one in settings.qos if one.must_be_in_quota]
        if firm and draw.random() < 0.5:
            opened = msgspec.structs.replace(opened, qos=draw.choice(firm))
        if opened.qos in firm and draw.random() < 0.8:
            keep_ms = draw.choice((20_000, MINUTE_MS, 5 * MINUTE_MS, 20 * MINUTE_MS))
            opened = msgspec.structs.replace(opened, keep_ms=keep_ms, closes_ms=draw.choice((None, 0, 600_000)))
        return msgspec.structs.replace(at, what=opened)

    def _allowances(self, settings: SchedulerSettings, happenings: Sequence[hi.At]) -> list[hi.At]:
        """Draw who is granted more, for how long, and who asks for it."""
        draw = self.random
        found: list[hi.At] = []
        everybody = [(at, at.what) for at in happenings if isinstance(at.what, hi.Opens)]
        for number in range(draw.choice((0, 1, 3, 6))):
            at, opened = draw.choice(everybody)
            walltime_ms, gpus = draw.choice(((4 * HOUR_MS, 0), (0, 2), (0, 4), (4 * HOUR_MS, 2)))
            for_ms, name = draw.choice((MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, DAY_MS)), f"a{number}"
            begin_ms = max(0, at.ms + draw.choice((-1000, -1000, 1000, 60_000)))
            granted = hi.Allows(name, opened.project, opened.user, for_ms, walltime_ms, gpus)
            found.append(hi.At(begin_ms, granted))
            if draw.random() < 0.3:  # it is taken back, or said anew
                found.append(
                    hi.At(
                        begin_ms + draw.choice((20_000, 300_000)),
                        msgspec.structs.replace(granted, for_ms=draw.choice((0, HOUR_MS))),
                    )
                )
            asks = msgspec.structs.replace(
                opened,
                session=SessionId(f"more{number}"),
                qos=draw.choice([one.name for one in settings.qos]),
                gpus=draw.choice((1, max(1, gpus))),
                walltime_ms=draw.choice((None, walltime_ms or None, 3 * HOUR_MS)),
            )
            firm = any(one.name == asks.qos and one.must_be_in_quota for one in settings.qos)
            asks = msgspec.structs.replace(asks, keep_ms=asks.keep_ms if firm else 0)
            found.append(hi.At(begin_ms + draw.choice((1, 1000, 30_000, 300_000)), asks))
        return found

    def _moment(self) -> int:
        return self.random.randrange(self.until_ms)

    def _by_hand(self) -> list[hi.At]:
        """Draw what people change about requests and cells."""
        draw = self.random
        found: list[hi.At] = []
        for _ in range(draw.choice((1, 2, 8))):
            at_ms, session = draw.randrange(self.until_ms), SessionId(f"s{draw.randrange(30)}")
            what: Literal["hold", "put-first", "requeue", "extend", "boost"] = draw.choice(
                ("hold", "put-first", "requeue", "extend", "boost")
            )
            is_own = what == "hold" and at_ms % 2
            found.append(hi.At(at_ms, hi.ByHand(session, "hold-own" if is_own else what)))
            if what == "hold":
                found.append(hi.At(at_ms + draw.choice((5000, 60_000, 900_000)), hi.ByHand(session, "release")))
        return found

    def _drains(self, joins: Sequence[hi.Joins]) -> list[hi.At]:
        """Draw when nodes are to be drained, and are given back."""
        draw = self.random
        at_ms, agent = draw.randrange(self.until_ms), draw.choice(joins).agent
        in_ms = draw.choice((60_000, 900_000, 2_400_000, 7_200_000, 50_000_000))
        found = [hi.At(at_ms, hi.PlansDrain(agent, in_ms))]
        if draw.random() < 0.7:
            found.append(hi.At(at_ms + draw.choice((30_000, 900_000, 3_600_000)), hi.Drains(agent, is_drained=False)))
        return found

    def _delays(self) -> hi.Delays:
        draw = self.random
        if draw.random() < 0.3:
            return hi.Delays(evict_ms=draw.choice((0, 500)))
        return hi.Delays(
            evict_ms=draw.choice((0, 500, 5000)),
            start_ms=draw.choice((0, 1000, 5000)),
            tick_ms=draw.choice((0, 0, 1000)),
            lost_percent=draw.choice((0, 0, 0, 10)),
            early_percent=draw.choice((0, 50)),
            stalled_percent=draw.choice((0, 0, 0, 5)),
            ask_again_ms=draw.choice((0, 0, 3000)),
        )

    # What there is

    def _joins(self) -> list[hi.Joins]:
        draw = self.random
        nodes = draw.choice((1, 1, 2, 3))
        found = []
        for index in range(nodes):
            size = draw.choice((1, 2, 2, 4, 4))
            name, memory = ("NVIDIA L4", 24) if self.pool == "types" and draw.random() < 0.5 else ("NVIDIA A100", 80)
            slots: tuple[ev.Slot, ...] = hi.gpus(size, name, memory * hi.GB)
            cpus, host = (32, 256) if self.pool == "cpus" else (0, 0)
            if self.pool == "mig":
                slots = hi.gpus(size) + hi.slices(draw.choice((2, 4))) if not index or draw.random() < 0.6 else slots
            elif self.pool == "cpu":
                slots = hi.cpu_slots(size)
            elif draw.random() < 0.1:
                slots += hi.cpu_slots(2)
            if self.seed >= MIXED and self.pool == "types" and draw.random() < 0.7:
                slots += self._others(slots)
            found.append(hi.Joins(AgentId(f"n{index}"), slots, cpus, host * hi.GB))
        return found

    def _others(self, slots: tuple[ev.Slot, ...]) -> tuple[ev.Slot, ...]:
        """Draw GPUs of the other type that a node has beside these."""
        name, memory = ("NVIDIA A100", 80) if "L4" in slots[0].name else ("NVIDIA L4", 24)
        others = hi.gpus(self.random.choice((1, 1, 2, 3)), name, memory * hi.GB)
        return tuple(msgspec.structs.replace(one, id=SlotId(f"other{index}")) for index, one in enumerate(others))

    # What is promised

    def _settings(self, there: int) -> SchedulerSettings:
        draw = self.random
        is_nested = draw.random() < 0.5
        names = [f"p{index}" for index in range(draw.randrange(1, 6))]
        tops = [f"d{index}" for index in range(draw.randrange(1, 3))] if is_nested else []
        to_give = there * 1000 * (2 if draw.random() < 0.2 else 1)
        projects: list[Project] = []
        for name in [*names, *tops]:
            inside = name in names and tops and draw.random() < 0.8
            mine = draw.choice((0, 500, 1000, 1000, 2000, 3000, 4000))
            mine = min(mine, to_give)
            projects.append(
                Project(
                    id=ProjectId(name),
                    parent=ProjectId(draw.choice(tops)) if inside else None,
                    guaranteed_milli=mine,
                    weight=draw.choice((1, 1, 1, 3)),
                    priority=draw.choice((0, 0, 0, 5)),
                    lending_limit_milli=draw.choice((None, None, None, None, None, 0, 1000)),
                    can_borrow=draw.random() < 0.88,
                    budget=self._budget(),
                    user_limit_milli=draw.choice((None, None, None, None, 1000, 2000)),
                    limit_milli=draw.choice((None, None, None, mine + 1000, mine + 2000)),
                    class_hours=self._hours(to_give, mine),
                )
            )
            if not inside:
                to_give -= mine
        if draw.random() < 0.2:
            projects = []
        return SchedulerSettings(qos=self._qos(), projects=tuple(_possible(projects)))

    def _budget(self) -> Budget | None:
        draw = self.random
        if draw.random() > 0.08:
            return None
        return Budget(draw.choice((10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS)), draw.choice(("day", "week", "month")))

    def _hours(self, to_give: int, mine: int) -> tuple[ClassHours, ...]:
        draw = self.random
        if draw.random() > 0.12 or to_give < mine + 1000:
            return ()
        begin = draw.randrange(0, 1380, 15)
        return (
            ClassHours(
                name="lecture",
                days=tuple(range(7)),
                from_minute=begin,
                until_minute=min(1440, begin + draw.choice((30, 90, 600))),
                guaranteed_milli=mine + draw.choice((1000, 2000)),
                zone=Zone("UTC"),
            ),
        )

    def _qos(self) -> tuple[QoS, ...]:
        draw = self.random
        if draw.random() < 0.4:
            return DEFAULT_QOS
        changed = []
        for qos in DEFAULT_QOS:
            never = qos.preemption is Preemption.NEVER
            changed.append(
                QoS(
                    name=qos.name,
                    priority=qos.priority,
                    walltime_ms=draw.choice((qos.walltime_ms, 10 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS)),
                    queued_per_user=max(qos.queued_per_user, draw.choice((1, 4, 20))),
                    running_per_user=draw.choice((None, qos.running_per_user, 2)),
                    must_be_in_quota=qos.must_be_in_quota,
                    grace_ms=draw.choice((0, 10_000, 30_000, 30_000, 120_000)),
                    min_runtime_ms=draw.choice((0, 10_000, qos.min_runtime_ms, qos.min_runtime_ms, 300_000)),
                    preemption=qos.preemption if never else draw.choice((Preemption.REQUEUE, Preemption.PAUSE)),
                    share_after_ms=draw.choice((120_000, 120_000, 10_000)),
                )
            )
        return tuple(changed)

    # What people want

    def _people(self, settings: SchedulerSettings, there: int, joins: Sequence[hi.Joins]) -> list[hi.At]:
        draw = self.random
        names = [project.id for project in settings.projects] + [ProjectId("free")]
        crowd = draw.choice((4, 8, 16, 30))
        size = max(len(join.slots) for join in joins)
        found = []
        burst = self._moment() // 2
        for index in range(crowd):
            opened = self._notebook(index, draw.choice(names), size)
            at_ms = draw.choice((self._moment() // 2, self._moment() // 4, 0, burst))
            found.append(hi.At(at_ms + draw.randrange(1000), opened))
            if draw.random() < 0.05:
                found.append(hi.At(self._moment(), hi.GivesUp(opened.session)))
        return found

    def _notebook(self, index: int, project: ProjectId, size: int) -> hi.Opens:
        draw = self.random
        qos = draw.choice(
            ("interactive", "interactive", "interactive", "interactive", "batch", "batch", "long", "reserved")
        )
        shape = draw.random()
        gpus = 1 if shape < 0.8 or size == 1 else draw.choice((2, min(3, size), size))
        walltime = draw.choice((None, None, None, 2 * MINUTE_MS, 10 * MINUTE_MS))
        cells = [
            hi.CellPlan(
                draw.choice((0, 100, 5000, 60_000, 600_000)) if number else draw.randrange(5000),
                draw.choice((1500, 20_000, 120_000, 600_000, 1_500_000, 1_500_000)) + draw.randrange(1000),
            )
            for number in range(draw.choice((1, 1, 2, 5, 12)))
        ]
        kind, memory, cpus, host = "", 0, 0, 0
        if self.pool == "types" and draw.random() < 0.4:
            kind = draw.choice(("A100", "L4"))
        elif self.pool == "types" and draw.random() < 0.2:
            memory = 40 * hi.GB
        elif self.pool == "mig" and draw.random() < 0.5:
            kind, gpus = draw.choice(("MIG 1g.10gb", "MIG", "A100")), 1
        elif self.pool == "cpus" and draw.random() < 0.5:
            cpus, host = draw.choice((4, 16, 30)), draw.choice((0, 64, 200)) * hi.GB
        elif self.pool == "plain" and draw.random() < 0.04:
            gpus = 0
        return hi.Opens(
            session=SessionId(f"s{index}"),
            user=UserName(f"u{draw.randrange(max(2, index + 1))}"),
            project=project,
            qos=qos,
            cells=tuple(cells),
            gpus=gpus,
            walltime_ms=walltime,
            gpu_type=kind,
            gpu_memory_bytes=memory,
            cpus=cpus,
            memory_bytes=host,
            patience_ms=draw.choice((None, None, None, 60_000, 600_000)),
            closes_ms=draw.choice((None, 0, 60_000)),
        )

    # What goes wrong

    def _faults(self, settings: SchedulerSettings, joins: Sequence[hi.Joins], there: int) -> list[hi.At]:
        draw = self.random
        found: list[hi.At] = []
        for _ in range(draw.randrange(1, 4)):
            at_ms, join = self._moment(), draw.choice(joins)
            kind = draw.choice(("lost", "lost", "restarted", "drained", "settings", "jump", "relinked"))
            if kind == "lost":
                found.append(hi.At(at_ms, hi.GoesSilent(join.agent)))
                back: hi.Happening = hi.Returns(join.agent) if draw.random() < 0.7 else join
                found.append(hi.At(at_ms + draw.choice((5000, 90_000, 900_000)), back))
            elif kind == "restarted":
                found.append(hi.At(at_ms, join))
            elif kind == "relinked":
                found.append(hi.At(at_ms, hi.Returns(join.agent)))
            elif kind == "drained":
                found.append(hi.At(at_ms, hi.Drains(join.agent, is_drained=True)))
                found.append(hi.At(at_ms + 900_000, hi.Drains(join.agent, is_drained=False)))
            elif kind == "jump":
                found.append(hi.At(at_ms, hi.ClockJumps(draw.choice((60_000, 3 * HOUR_MS, DAY_MS)))))
            else:
                found.append(hi.At(at_ms, hi.Changes(self._settings(there))))
        return found


def _possible(projects: Sequence[Project]) -> list[Project]:
    """Raise limits that are below what is guaranteed, which no file may say."""
    found = []
    for project in projects:
        most = max([project.guaranteed_milli, *(hours.guaranteed_milli for hours in project.class_hours)])
        limit = project.limit_milli
        found.append(
            Project(
                **{
                    **{name: getattr(project, name) for name in project.__struct_fields__},
                    "limit_milli": None if limit is None else max(limit, most),
                }
            )
        )
    return found
