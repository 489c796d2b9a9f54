"""What people are told holds on days that are rare: at midnight of a budget, in an exam, before a drain, at home."""

import random
from collections.abc import Callable
from itertools import chain
from typing import Literal

import msgspec
import pytest

from bulletin.ids import AgentId, SessionId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import SOON_S, at, node, opens, play

H100, L4 = "NVIDIA H100 80GB HBM3", "NVIDIA L4"
MORNING, EVENING = "2026-11-30T08:00", "2026-11-30T23:10"
KINDS = [node("fast", 2, H100), node("slow", 2, L4), node("mid", 2)]
PLAIN = [node("fast", 4), node("slow", 4)]
TIMES = [300, 600, 1800]
CLASSES = ["interactive", "interactive", "batch", "reserved"]
BY_HAND: tuple[Literal["hold", "release", "put-first", "requeue", "extend", "boost"], ...] = (
    "hold", "release", "put-first", "requeue", "extend", "boost", "put-first", "requeue"
)  # fmt: skip
#: A quota file, what happens, and when it begins.
World = tuple[str, list[hi.At], str]


def come(draw: random.Random, number: int, project: str, last: float, qos: list[str], **more: list[str]) -> list[hi.At]:
    """Make people who come when they like, each with one cell."""
    found = []
    for n in range(number):
        wants: dict[str, object] = {key: draw.choice(of) for key, of in more.items()}
        wants |= {"time": draw.choice(TIMES), "qos": draw.choice(qos), "gpus": draw.choice([1, 1, 2])}
        found.append(opens(round(draw.uniform(0, last), 1), f"{project}{n}", project, draw.randint(60, 1800), **wants))
    return found


def budgets(draw: random.Random) -> World:
    file = (
        f'[prices]\nH100=4.0\nL4=0.5\n[projects.a]\nbudget="{draw.choice([2, 4])} GPU-hours per day"\n'
        f'[projects.b]\nguaranteed={draw.choice([0, 2])}\nbudget="{draw.choice([1, 3])} GPU-hours per day"\n'
        "[projects.c]\nguaranteed=1\n"
    )
    types = ["", "", "H100", "L4"]
    people = [come(draw, 6, name, 2400, ["interactive", "batch"], gpu_type=types) for name in "abc"]
    return file, [*KINDS, *chain(*people)], EVENING


def exams(draw: random.Random) -> World:
    users = draw.choice(["", 'users=["cs0","cs1","cs2"]\n'])
    file = (
        f"[projects.cs]\nguaranteed={draw.choice([0, 2])}\n[projects.o]\nguaranteed={draw.choice([0, 2])}\n"
        f'[reservations.exam]\nproject="cs"\n{users}gpus={draw.choice([2, 4])}\nfrom="2026-11-30T08:20"\n'
        f'until="2026-11-30T09:{draw.choice(["00", "10"])}"\ntime_zone="UTC"\n'
    )
    people = [come(draw, 8, name, 2400, CLASSES) for name in ("cs", "o")]
    return file, [*PLAIN, *chain(*people)], MORNING


def homes(draw: random.Random) -> World:
    file = (
        f'[node_pools.h100]\ngpu="H100"\n[projects.a]\nguaranteed={draw.choice([2, 3])}\nnode_pools={{h100=1}}\n'
        f"[projects.b]\nguaranteed={draw.choice([1, 2])}\nnode_pools={{h100={draw.choice([0, 1])}}}\n[projects.c]\n"
    )
    people = [come(draw, 6, name, 2400, CLASSES, gpu_type=["", "", "H100", "L4"]) for name in "abc"]
    return file, [*KINDS, *chain(*people)], MORNING


def drains(draw: random.Random) -> World:
    file = (
        f"[projects.a]\nguaranteed={draw.choice([0, 2])}\n[projects.b]\nguaranteed={draw.choice([0, 4])}\n"
        '[projects.e]\n[reservations.exam]\nproject="e"\ngpus=4\nfrom="2026-11-30T09:00"\nuntil="2026-11-30T10:00"\n'
        'time_zone="UTC"\n'
    )
    plan = at(draw.randint(0, 600), hi.PlansDrain(AgentId("fast"), draw.choice([1_800_000, 3_600_000])))
    people = [come(draw, 6, name, 3000, ["interactive", "batch"]) for name in "abe"]
    return file, [*PLAIN, plan, *chain(*people)], MORNING


def hands(draw: random.Random) -> World:
    file = f"[projects.a]\nguaranteed={draw.choice([0, 2])}\n[projects.b]\nguaranteed={draw.choice([0, 1])}\n"
    people = [come(draw, 8, name, 1200, ["interactive", "batch"], user=[f"{name}u", f"{name}v"]) for name in "ab"]
    sessions = [SessionId(f"{name}{n}") for name in "ab" for n in range(8)]
    changes = [at(draw.uniform(60, 1500), hi.ByHand(draw.choice(sessions), what)) for what in BY_HAND]
    return file, [node("fast", 4), *chain(*people), *changes], MORNING


def frozen(file: str, happenings: list[hi.At], begin: str, freeze: float) -> list[hi.At]:
    """Leave out who comes after a time, and let whoever is there then use the whole walltime."""
    here = [one for one in happenings if one.ms <= freeze * 1000]
    day = play(file, here, last=freeze, begin=begin)
    ended = {name for name, kernel in day.driver.kernels.items() if kernel.is_done}
    found = []
    for one in here:
        what = one.what
        if isinstance(what, hi.Opens) and what.session not in ended:
            what = msgspec.structs.replace(what, cells=(hi.CellPlan(0, 10**12),))
        found.append(hi.At(one.ms, what))
    return found


@pytest.mark.parametrize(("seed", "freeze"), [(0, 900), (1, 2000), (2, 1500)])
@pytest.mark.parametrize("kind", [budgets, exams, homes, drains, hands], ids=lambda kind: kind.__name__)
def test_nobody_waits_longer_than_they_were_told(
    kind: Callable[[random.Random], World], seed: int, freeze: float
) -> None:
    """If nobody new comes and every cell uses its whole walltime, nobody waits longer than "at most" (17)."""
    file, happenings, begin = kind(random.Random(f"{kind.__name__}:{seed}"))
    last = freeze + 12 * 3600
    asked = {freeze, freeze + 60, freeze + 600, freeze + 1800}
    beats = [at(second, hi.TicksEarly()) for second in sorted(asked)]
    day = play(
        file,
        frozen(file, happenings, begin, freeze),
        beats,
        last=last,
        begin=begin,
        asks=lambda second: second in asked,
    )
    for session, said in day.told.items():
        for second, words in said:
            if words.wait_ms is not None and not words.is_on_hold:
                until = second + words.wait_ms / 1000 + SOON_S
                assert any(second <= begun <= until for begun in day.grants(session)) or until >= last, (second, words)


def test_who_gives_back_may_ask_again_after_a_session_has_left_for_the_next_one_in_line() -> None:
    """Once `lost` has gone the owner lends what its own hot session had: to `lost` or `next`, whoever asks then."""
    ann = {"user": "ann", "qos": "batch"}
    day = play(
        '[projects.lab]\nguaranteed = 2\nlending_limit = 0\n[qos.batch]\nshare_after = "1 d"\n',
        [node("a", 2), node("b", 2)],
        opens(1, "stays", "guests", 1800, time=1800, **ann),
        opens(2, "hot", "lab", 30),
        opens(3, "lost", "guests", 1200, time=1200, **ann),
        opens(200, "next", "guests", 3600, time=3600, **ann),
        opens(210, "last", "guests", 600, time=600, **ann),
        opens(300, "owner", "lab", 600, gpus=2, time=600),
        last=4000,
        asks=lambda second: 300 < second < 330,
    )
    assert day.losers() == {"lost"}
    assert day.told["last"]
    for second, words in day.told["last"]:
        assert words.wait_ms is not None
        assert second + words.wait_ms / 1000 + SOON_S >= day.grants("last")[0]
