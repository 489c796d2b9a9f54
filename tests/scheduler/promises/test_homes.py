# ruff: noqa: E501  # settings and histories in one line each
"""Owners of several node pools: each finds their GPUs at home, and nobody is put where they would have to leave again."""

import random

import pytest

from bulletin.ids import AgentId
from gpu_worker.scheduler import actions as act
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S
from tests.scheduler.promises.seen import HOUR_S, at, notebook
from tests.scheduler.promises.stories import (
    BATCH_S,
    H100,
    L4,
    LONG,
    POOL,
    ask,
    join,
    left,
    look,
    places,
    quotas,
    taken_by_guarantee,
    waits,
)

TWO = POOL + '[node_pools.l4]\ngpu = "L4"\n'


@pytest.mark.parametrize(("fast", "slow"), [(2, 2), (4, 1), (3, 4)])
@pytest.mark.parametrize("apart", [0, 0.5, 20])
@pytest.mark.parametrize("qos", ["interactive", "batch"])
@pytest.mark.parametrize("first", ["a", "b"])
def test_two_owners_who_ask_for_anything_go_home(fast: int, slow: int, apart: float, qos: str, first: str) -> None:
    text = TWO + f"[projects.a]\nnode_pools = {{ h100 = {fast} }}\n[projects.b]\nnode_pools = {{ l4 = {slow} }}\n"
    second = "ab".replace(first, "")
    number = {"a": fast, "b": slow}
    seen = look(
        quotas(text), join(fast, slow),
        ask(1, fast + slow, "guests", BATCH_S, **LONG),
        ask(600, number[first], first, 1700, qos=qos),
        ask(600 + apart, number[second], second, 1700, qos=qos),
        last=2000,
    )  # fmt: skip
    assert (set(places(seen, "a")), set(places(seen, "b"))) == ({"fast"}, {"slow"})
    assert max(waits(seen, "a")[-1], waits(seen, "b")[-1]) <= SOON_S
    assert left(seen, "a") + left(seen, "b") == 0


@pytest.mark.parametrize("first", ["a", "b"])
def test_labs_of_one_department_go_home_each(first: str) -> None:
    text = TWO + (
        "[projects.dep]\n"
        '[projects.a]\nparent = "dep"\nnode_pools = { h100 = 3 }\n[projects.b]\nparent = "dep"\nnode_pools = { l4 = 3 }\n'
        '[projects.c]\nparent = "dep"\n'
    )
    seen = look(
        quotas(text), join(3, 3),
        ask(1, 6, "c", BATCH_S, **LONG),
        ask(600, 3, first, 1700),
        ask(700, 3, "ab".replace(first, ""), 1700),
        last=2000,
    )  # fmt: skip
    assert (set(places(seen, "a")), set(places(seen, "b"))) == ({"fast"}, {"slow"})
    assert left(seen, "a") + left(seen, "b") == 0
    assert left(seen, "c") == 6


@pytest.mark.parametrize("gpus", [2, 4])
def test_owners_of_larger_requests_go_home_each(gpus: int) -> None:
    text = TWO + "[projects.a]\nnode_pools = { h100 = 4 }\n[projects.b]\nnode_pools = { l4 = 4 }\n"
    seen = look(
        quotas(text), join(4, 4),
        ask(1, 8, "guests", BATCH_S, **LONG),
        ask(600, 4 // gpus, "b", 1700, gpus=gpus),
        ask(600, 4 // gpus, "a", 1700, gpus=gpus),
        last=2000,
    )  # fmt: skip
    assert (set(places(seen, "a")), set(places(seen, "b"))) == ({"fast"}, {"slow"})
    assert left(seen, "guests") == 8


def test_hot_sessions_at_home_leave_before_those_at_the_other_owners_home() -> None:
    text = TWO + "[projects.a]\nnode_pools = { h100 = 2 }\n[projects.b]\nnode_pools = { l4 = 2 }\n"
    seen = look(
        quotas(text), join(2, 2),
        ask(1, 4, "guests", 20, 20, think_s=3000),
        ask(600, 2, "b", 1700),
        ask(600, 2, "a", 1700),
        last=2000,
    )  # fmt: skip
    assert (set(places(seen, "a")), set(places(seen, "b"))) == ({"fast"}, {"slow"})
    assert max(waits(seen, "a")[-1], waits(seen, "b")[-1]) <= 5


def test_a_gpu_that_its_owner_does_not_ask_for_goes_to_another_owner_at_once() -> None:
    text = TWO + "[projects.a]\nnode_pools = { h100 = 2 }\n[projects.b]\nnode_pools = { l4 = 2 }\n"
    seen = look(
        quotas(text), join(2, 2),
        ask(1, 2, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(600, 2, "b", 1700),
        last=2000,
    )  # fmt: skip
    assert waits(seen, "b")[-1] <= 1
    assert left(seen, "guests") == 0


def test_what_an_owner_may_not_have_for_its_limit_keeps_nobody_out() -> None:
    """The owner's budget is spent: what it asks for keeps no GPU at its home from others."""
    text = TWO + (
        '[projects.a]\nnode_pools = { h100 = 2 }\nbudget = "1.5 GPU-hours per day"\n[projects.b]\nnode_pools = { l4 = 2 }\n'
    )
    seen = look(
        quotas(text), join(2, 2),
        ask(1, 1, "a", 3500, name="spends", walltime_ms=3_600_000),
        ask(2, 2, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(3700, 2, "a", 600, gpu_type="H100", name="waits", walltime_ms=2_700_000),
        ask(3800, 1, "c", 600),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "c")[-1] <= 1


def test_a_large_request_that_fits_no_node_of_its_home_keeps_nobody_out() -> None:
    """On each of two nodes another owner has one of two: what is left of both is for whoever asks for one."""
    text = TWO + "[projects.a]\nnode_pools = { h100 = 2 }\n[projects.d]\nnode_pools = { h100 = 2 }\n"
    seen = look(
        quotas(text),
        at(0, hi.Joins(AgentId("f0"), hi.gpus(2, H100))),
        ask(1, 1, "d", BATCH_S, name="d-first", **LONG),
        ask(2, 1, "guests", 100),
        at(3, hi.Joins(AgentId("f1"), hi.gpus(2, H100))),
        ask(4, 1, "guests", 100, name="more"),
        ask(5, 1, "d", BATCH_S, name="d-second", **LONG),
        ask(200, 1, "a", 600, gpus=2),
        ask(300, 2, "others", 600, 600, walltime_ms=700_000),
        last=1500,
    )  # fmt: skip
    assert waits(seen, "others")[-2] <= 5, "one node may be held for the large one"


@pytest.mark.parametrize("seed", range(40))
def test_owners_of_three_pools_come_to_rest_at_home(seed: int) -> None:
    """Cells that stay for hours, all guarantees together fit: who is owed a pool has it, and nobody is moved later."""
    draw = random.Random(seed)
    sizes = {name: draw.randint(1, 4) for name in ("fast", "slow", "old")}
    pools = {"fast": "h100", "slow": "l4", "old": "old"}
    homes = {"a": "fast", "b": "slow", "c": "old", "d": draw.choice(("fast", "slow", "old"))}
    owed = {
        "a": draw.randint(0, sizes["fast"]),
        "b": draw.randint(0, sizes["slow"]),
        "c": draw.randint(0, sizes["old"]),
    }
    owed["d"] = sizes[homes["d"]] - next(owed[name] for name in "abc" if homes[name] == homes["d"])
    rest = sum(sizes.values()) - sum(owed.values())
    text = TWO + '[node_pools.old]\ngpu = "A10"\n'
    text += "".join(
        f"[projects.{name}]\nnode_pools = {{ {pools[homes[name]]} = {gpus} }}\n" for name, gpus in owed.items()
    )
    text += f"[projects.course]\nguaranteed = {draw.randint(0, rest)}\n"
    models = {"fast": H100, "slow": L4, "old": "NVIDIA A10"}
    opened = [
        at(draw.uniform(1, 900), notebook(f"{name}{n}", name, BATCH_S, gpu_type=draw.choice(("", "", "", "H100", "L4")), **LONG))
        for name in (*"abcd", "course", "guests") for n in range(draw.randint(0, 5))
    ]  # fmt: skip
    nodes = [at(0, hi.Joins(AgentId(name), hi.gpus(sizes[name], models[name]))) for name in sizes]
    seen = look(quotas(text), nodes, opened, last=2 * HOUR_S)
    assert not taken_by_guarantee(seen, after=1500)
    runs = seen.running()[-1][1]
    place = {one.session: one.agent for _, _, acts in seen.log for one in acts if isinstance(one, act.Grant)}
    for name, gpus in owed.items():
        mine = [one for one in seen.opened.values() if one.project == name]
        for_home = [one for one in mine if one.gpu_type and one.gpu_type in models[homes[name]]]
        anything = [one for one in mine if not one.gpu_type]
        at_home = [one for one in mine if one.session in runs and place[one.session] == homes[name]]
        assert len(at_home) >= min(gpus, len(for_home)), name
        assert sum(one.session in runs for one in mine) >= min(gpus, len(for_home + anything)), name


@pytest.mark.parametrize("guaranteed", ["", "guaranteed = 2\n"])
def test_what_an_owner_takes_back_from_itself_is_not_counted_upon_by_another_owner(guaranteed: str) -> None:
    """A batch cell at home goes for one that types; who owns the other node has a GPU there in the same time."""
    text = TWO + "".join(
        f"[projects.{name}]\n{guaranteed}node_pools = {{ {home} = 2 }}\n" for name, home in (("a", "h100"), ("b", "l4"))
    )
    seen = look(
        quotas(text), join(2, 2),
        ask(1, 1, "guests", BATCH_S, name="there", gpu_type="L4"),
        ask(2, 1, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(3, 1, "b", BATCH_S, name="at home"),
        ask(5, 1, "a", BATCH_S, name="batch", gpu_type="H100", **LONG),
        ask(600, 1, "a", 1700, gpu_type="H100"),
        ask(620, 1, "a", 1700, name="types", gpu_type="H100"),
        ask(620, 1, "b", 1700),
        last=900,
    )  # fmt: skip
    assert (seen.wait("types0"), seen.wait("b0")) == (30, 30)
    assert places(seen, "b0") == ["slow"]
