"""Histories by seed of two node pools with owners, cells that are never taken back, and nodes of users' own."""

import random

import msgspec

from bulletin.ids import AgentId, UserName
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import node, opens, quotas

_TYPES = {"h100": "NVIDIA H100 80GB HBM3", "l4": "NVIDIA L4"}
_CLASSES = '[qos.batch]\nmin_runtime = "{} s"\n[qos.sure]\npriority = {}\nwalltime = "1 h"\npreemption = "never"\n'


def pools_history(seed: int) -> hi.History:
    """Make up one history."""
    draw = random.Random(seed)
    sizes = {pool: draw.randrange(1, 5) for pool in _TYPES}
    text = _CLASSES.format(draw.choice((0, 30, 60)), draw.choice((50, 100, 200)))
    text += "".join(f'[node_pools.{pool}]\ngpu = "{pool.upper()}"\n' for pool in sizes)
    left, projects = dict(sizes), ["guests"]
    for name in ("a", "b", "c"):
        owned = {pool: draw.randrange(0, left[pool] + 1) for pool in sizes}
        left = {pool: left[pool] - owned[pool] for pool in sizes}
        pools = ", ".join(f"{pool} = {number}" for pool, number in owned.items() if number)
        text += f"[projects.{name}]\n" + (f"node_pools = {{ {pools} }}\n" if pools else "")
        projects.append(name)
    found = [node(pool, number, _TYPES[pool]) for pool, number in sizes.items()]
    if draw.random() < 0.6:
        brought = node("own", draw.randrange(1, 3), _TYPES[draw.choice(("h100", "l4"))])
        owner = msgspec.structs.replace(brought.what, owner=UserName(f"u{draw.randrange(4)}"), agent=AgentId("own"))
        found.append(msgspec.structs.replace(brought, ms=draw.randrange(400_000), what=owner))
    for number in range(draw.randrange(6, 24)):
        runs = [draw.choice((20, 100, 400, 2000))] * draw.randrange(1, 4)
        found.append(
            opens(
                draw.randrange(1200), f"s{number}", draw.choice(projects), *runs, think=draw.choice((1, 30)),
                user=f"u{draw.randrange(12)}", qos=draw.choice(("interactive", "batch", "sure")),
                gpu_type=draw.choice(("H100", "L4", "H100", "L4", "")), closes_ms=draw.choice((0, 0, 60_000, None)),
                gpus=draw.choice((1, 1, 1, 1, 2)),
            )
        )  # fmt: skip
    found.sort(key=lambda one: one.ms)
    delays = hi.Delays(ask_again_ms=500, evict_ms=draw.choice((0, 1000)))
    return hi.History(
        seed=seed, begin_ms=1_759_741_200_000, until_ms=3_600_000, settings=quotas(text), delays=delays,
        happenings=tuple(found),
    )  # fmt: skip
