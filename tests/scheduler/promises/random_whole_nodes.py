"""Who wants a node alone in a random history: which classes give one, who asks, and to whom it is granted."""

import random
from collections.abc import Sequence

import msgspec

from bulletin.ids import SessionId
from bulletin.units import DAY_MS, HOUR_MS, MINUTE_MS
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.promises import history as hi


def let_classes(draw: random.Random, settings: SchedulerSettings) -> SchedulerSettings:
    """Draw which classes of service give nodes; fewer rules than usual are in the way of several GPUs."""
    classes = []
    for one in settings.qos:
        gives, most = draw.random() < 0.6, one.gpus_per_cell if draw.random() < 0.3 else None
        classes.append(msgspec.structs.replace(one, can_be_exclusive=gives, gpus_per_cell=most))
    projects = []
    for each in settings.projects:
        is_strict = draw.random() < 0.3
        strict = each.gpus_per_cell if is_strict else None
        user_limit = each.user_limit_milli if is_strict else None
        projects.append(msgspec.structs.replace(each, gpus_per_cell=strict, user_limit_milli=user_limit))
    return msgspec.structs.replace(settings, qos=tuple(classes), projects=tuple(projects))


def ask_for_nodes(
    draw: random.Random, settings: SchedulerSettings, happenings: Sequence[hi.At], joins: Sequence[hi.Joins]
) -> list[hi.At]:
    """Draw which notebooks ask for a node, mostly for one of a size that there is, and what is granted to them."""
    found: list[hi.At] = []
    for at in happenings:
        if isinstance(at.what, hi.Changes):
            found.append(msgspec.structs.replace(at, what=hi.Changes(let_classes(draw, at.what.settings))))
        elif isinstance(at.what, hi.Opens) and at.what.gpus and draw.random() < 0.3:
            found.append(msgspec.structs.replace(at, what=_alone(draw, at.what, settings, joins)))
        else:
            found.append(at)
    everybody = [(at, at.what) for at in found if isinstance(at.what, hi.Opens) and at.what.is_exclusive]
    for number in range(draw.choice((0, 1, 2)) if everybody else 0):
        at, opened = draw.choice(everybody)
        begin_ms = max(0, at.ms + draw.choice((-1000, 1000, 60_000)))
        for_ms = draw.choice((MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, DAY_MS))
        name = f"node{number}"
        granted = hi.Allows(name, opened.project, opened.user, for_ms, gpus=opened.gpus, is_exclusive=True)
        again = msgspec.structs.replace(opened, session=SessionId(name))
        found += [hi.At(begin_ms, granted), hi.At(begin_ms + draw.choice((1, 1000, 300_000)), again)]
        if draw.random() < 0.3:  # it is taken back, or for a smaller node
            less = msgspec.structs.replace(granted, for_ms=draw.choice((0, HOUR_MS)), gpus=max(1, opened.gpus - 1))
            found.append(hi.At(begin_ms + draw.choice((20_000, 300_000)), less))
    return found


def _alone(draw: random.Random, opened: hi.Opens, settings: SchedulerSettings, joins: Sequence[hi.Joins]) -> hi.Opens:
    """Let a notebook ask for all of a node: mostly one that could be had, in a class that gives some."""
    pure = [one for one in joins if len({slot.kind for slot in one.slots}) == 1]
    node = draw.choice(pure if pure and draw.random() < 0.9 else joins)
    giving = [one.name for one in settings.qos if one.can_be_exclusive and not one.must_be_in_quota]
    qos = draw.choice(giving) if giving and not opened.keep_ms and draw.random() < 0.7 else opened.qos
    return msgspec.structs.replace(
        opened,
        qos=qos,
        gpus=len(node.slots) + (draw.random() < 0.05),
        gpu_type=opened.gpu_type if draw.random() < 0.1 else "",
        gpu_memory_bytes=opened.gpu_memory_bytes if draw.random() < 0.1 else 0,
        walltime_ms=opened.walltime_ms if draw.random() < 0.7 else None,
        is_exclusive=True,
    )
