"""People at a site, in few words: who types, who sends batch cells, who sweeps, who keeps a session for a day."""

import random

import msgspec

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import at, notebook

#: What a site's processes take: to leave, to start, to ask again.
SITE = hi.Delays(evict_ms=3000, start_ms=2000, tick_ms=20, ask_again_ms=1000, early_percent=20)


def people(
    number: int,
    project: str,
    begin: float,
    until: float,
    *,
    name: str = "",
    seed: int = 0,
    run_s: float = 40,
    think_s: float = 60,
    spread_s: float = 60,
    **more: object,
) -> list[hi.At]:
    """Make people who type: short cells, and a while to read between them."""  # fmt: skip
    draw = random.Random(f"{seed}:{name or project}")
    found = []
    for index in range(number):
        first = begin + draw.uniform(0, spread_s)
        at_s, plans = first, list[hi.CellPlan]()
        while at_s < until and len(plans) < 400:
            run, think = min(1700, draw.expovariate(1 / run_s) + 2), draw.expovariate(1 / think_s) + 1
            plans.append(hi.CellPlan(round(think * 1000) if plans else 0, round(run * 1000)))
            at_s += run + think
        one = notebook(f"{name or project}-{index}", project, 1, **{"closes_ms": 1_800_000, **more})  # type: ignore[arg-type]
        found.append(at(first, msgspec.structs.replace(one, cells=tuple(plans))))
    return found


def cells(
    number: int,
    project: str,
    begin: float,
    *,
    runs_s: float | tuple[float, float],
    name: str = "",
    seed: int = 0,
    spread_s: float = 5,
    users: int = 0,
    qos: str = "batch",
    **more: object,
) -> list[hi.At]:
    """Make cells that each have a session of their own, of so many users (0 is one each)."""  # fmt: skip
    draw = random.Random(f"{seed}:{name or project}:cells")
    low, high = runs_s if isinstance(runs_s, tuple) else (runs_s, runs_s)
    found = []
    for index in range(number):
        user = {"user": f"{name or project}-u{index % users}"} if users else {}
        one = notebook(
            f"{name or project}-{index}", project, draw.uniform(low, high), qos=qos, closes_ms=0, **user, **more
        )
        found.append(at(begin + spread_s * index / max(1, number), one))
    return found


def machines(number: int, gpus: int, gpu: str = "NVIDIA A100", name: str = "n") -> list[hi.At]:
    """Make nodes that are there from the beginning."""
    return [at(0, hi.Joins(AgentId(f"{name}{index}"), hi.gpus(gpus, gpu))) for index in range(number)]
