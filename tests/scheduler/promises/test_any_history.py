# ruff: noqa: E501  # settings and histories in one line each
"""Random histories of nested node pools with a reservation: who is owed what, for how long, and what idles."""

import random

import pytest

from tests.scheduler.promises.seen import HOUR_S, at, notebook
from tests.scheduler.promises.stories import (
    H100,
    L4,
    POOL,
    idles,
    join,
    look,
    owed_too_long,
    quotas,
    reserve,
    reserved_debt,
)


@pytest.mark.parametrize("seed", range(3))
def test_any_history_of_nested_node_pools_and_a_reservation(seed: int) -> None:
    draw = random.Random(1000 + seed)
    text = POOL + (
        f'[projects.science]\nguaranteed = 6\nnode_pools = {{ h100 = 4 }}\n[projects.lab]\nparent = "science"\n'
        f'node_pools = {{ h100 = {draw.choice((1, 2, 3))} }}\n[projects.group]\nparent = "science"\n'
        '[projects.course]\nguaranteed = 2\nkeep_hot = "5 min"\n' + reserve("exam", "guests", 2, "09:20", "10:40", "zoe")
        + "[projects.guests]\n[projects.other]\n"
    )  # fmt: skip
    opened = []
    for n in range(60):
        name = draw.choice(("lab", "group", "course", "guests", "other", "guests"))
        runs = [draw.choice((20, 120, 900, 4000)) for _ in range(draw.randint(1, 4))]
        opened.append(at(draw.uniform(1, 6000), notebook(
            f"{name}{n}", name, *runs, think_s=draw.choice((5, 60)), gpu_type=draw.choice(("", "H100", "L4")),
            qos=draw.choice(("interactive", "batch")),
        )))  # fmt: skip
    for n in range(8):
        second = draw.uniform(600, 6000)
        opened.append(at(second, notebook(f"zoe{n}", "guests", draw.choice((60, 900)), 120, think_s=30, user="zoe")))
    seen = look(quotas(text), join(5, 5), opened, last=2 * HOUR_S)
    lab_home = dict(quotas(text).projects[1].pool_guarantees)["h100"]
    assert owed_too_long(seen, {"lab": (("lab",), lab_home // 1000)}) <= 92
    assert owed_too_long(seen, {"science": (("lab", "group"), 4)}) <= 92
    assert reserved_debt(seen, "zoe", 2, 1200, 6000) <= 92
    assert idles(seen, {"fast": (5, H100), "slow": (5, L4)}, keeps="course") <= 2
