"""A busy pool, played from a seed: people who ask, run, wait and leave; nodes and admins that come between.

Hypothesis looks for the odd history and makes it small; a crowd makes long ones, in which much waits.
`python -m tests.scheduler.crowd` makes the histories that are kept beside it anew. After a change of what the scheduler
decides, the old ones would go on with leases that it no longer grants.
"""

import random
from collections.abc import Iterable
from typing import Any

from bulletin.ids import ProjectId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Reclaim
from tests.scheduler import saved
from tests.scheduler.bench import MINUTE, slots
from tests.scheduler.history_machines import ManyProjects, Timetable
from tests.scheduler.history_pools import CPU_NODES, PROJECTS

#: How often what happens, of a hundred or so. What is not named is of every crowd.
EVERYBODY = {"ask": 24, "start": 30, "end": 16, "obey": 14, "leave": 5, "wait": 12, "deadline": 3, "withdraw": 2}
KINDS: dict[str, dict[str, int]] = {
    "quotas": {"repeat": 1},
    "reclaim": {"ask": 30, "start": 40, "end": 2, "obey": 10, "leave": 1, "wait": 24},
    "nodes": {"lose": 3, "join": 5, "noise": 1, "repeat": 2},
    "settings": {"admin": 4, "wait": 16},
    "clock": {"jump": 3, "back": 3, "deadline": 8},
    "cpu": {"lose": 1, "join": 1, "withdraw": 4},
    "classes": {"deadline": 6, "wait": 20, "jump": 1, "admin": 1},
}


NODES = {"a": slots(4), "b": slots(2), "c": slots(4), "d": slots(2, "cpu") + slots(1)}
#: Who is asked for; twice those of whom more should be waiting.
PAYING = [*(project.id for project in PROJECTS), ProjectId("lab"), ProjectId("maths"), ProjectId("stray")]


class Dice:
    """Draws from the strategies that the rules of the state machine name."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def draw(self, strategy: Any) -> Any:
        return self.random.choice(getattr(strategy, "elements", (False, True)))


class Crowd(ManyProjects):
    """The pool of the random histories with more GPUs and more people."""

    nodes = NODES

    def live(self, seed: int, kind: str, moves: int) -> None:
        """Play so many moves, judged as they come."""
        dice, weights = Dice(seed), EVERYBODY | KINDS[kind]
        for agent in self.nodes:
            self.an_agent_joins(agent, keeps=True, passed_ms=0)
        for _ in range(moves):
            [move] = dice.random.choices(list(weights), list(weights.values()))
            getattr(self, f"_{move}")(dice)

    def _ask(self, dice: Dice) -> None:
        self.number += 1
        roll = dice.random
        session = roll.randrange(40)
        # One large request at a time: of those that wait for room the scheduler counts one of each size as served.
        gpus = 1 if any(one.gpus > 1 for one in self.waiting.values()) else roll.choice((1, 1, 1, 2, 4))
        event = ev.RequestSubmitted(
            f"r{self.number}", f"l{self.number}", f"s{session}", f"u{session % 15}",
            roll.choice(PAYING), roll.choice(("interactive",) * 5 + ("batch", "batch", "reserved")),
            roll.choice((gpus, gpus, gpus, 0)), roll.choice((None, None, MINUTE, 10 * MINUTE)),
        )  # fmt: skip
        self.waiting[event.request] = event
        self.say(event)

    def _start(self, dice: Dice) -> None:
        self.a_cell_starts(dice)

    def _end(self, dice: Dice) -> None:
        self.a_cell_ends(dice)

    def _obey(self, dice: Dice) -> None:
        if self.asked or self.dying:
            self.an_agent_obeys(dice)

    def _leave(self, dice: Dice) -> None:
        self.a_session_is_released_or_dies(dice, twice=dice.random.random() < 0.1)

    def _wait(self, dice: Dice) -> None:
        self.time_passes(dice.random.choice((1, 999, 5_000, 20_000, MINUTE, 3 * MINUTE)))

    def _deadline(self, dice: Dice) -> None:
        self.the_deadline_comes()

    def _withdraw(self, dice: Dice) -> None:
        self.a_kernel_withdraws(dice)

    def _repeat(self, dice: Dice) -> None:
        self.a_kernel_says_it_twice(dice)

    def _noise(self, dice: Dice) -> None:
        self.news_of_nothing(dice.random.choice((ev.CellStarted, ev.CellEnded)))

    def _lose(self, dice: Dice) -> None:
        self.an_agent_is_lost(dice.random.choice(sorted(self.nodes)), dies=dice.random.random() < 0.5)

    def _join(self, dice: Dice) -> None:
        keeps = dice.random.random() < 0.8
        self.an_agent_joins(
            dice.random.choice(sorted(self.nodes)), keeps=keeps, passed_ms=dice.random.randrange(MINUTE)
        )

    def _admin(self, dice: Dice) -> None:
        roll = dice.random
        gone = {one.id for one in PROJECTS if one.parent is None and roll.random() < 0.15}
        self.an_admin_changes_quotas(
            gone=gone, guaranteed=roll.choice((0, 1000, 1500, 4000)), weight=roll.randint(1, 3),
            walltime_ms=roll.choice((30, 35)) * MINUTE, has_batch=roll.random() < 0.8,
        )  # fmt: skip

    def _jump(self, dice: Dice) -> None:
        self.time_passes(dice.random.choice((1, 7, 31)) * 24 * 60 * MINUTE)

    def _back(self, dice: Dice) -> None:
        """The clock is set back, says something, and is right again."""
        now_ms = self.bench.now_ms
        self.bench.now_ms = max(0, now_ms - dice.random.choice((1, MINUTE, 60 * MINUTE)))
        self.say(ev.Tick())
        self.bench.now_ms = now_ms


class CpuCrowd(Crowd):
    nodes = CPU_NODES | {"c": slots(3, "cpu")}


class ClassCrowd(Crowd):
    settings = Timetable.settings


def crowd(kind: str) -> Crowd:
    return {"cpu": CpuCrowd, "classes": ClassCrowd}.get(kind, Crowd)()


def make(kind: str, seeds: Iterable[int], moves: int) -> None:
    """Write the history in which most is reclaimed, as far as it was told before all comes to an end."""
    pools = [crowd(kind) for _ in seeds]
    for pool, seed in zip(pools, seeds, strict=True):
        pool.live(seed, kind, moves)
    pool = max(pools, key=lambda one: sum(isinstance(act, Reclaim) for *_, acts in one.bench.journal for act in acts))
    path = saved.KEPT / f"{kind}.jsonl"
    saved.write(path, pool.settings, pool.told, saved.answers(pool.settings, pool.told))


if __name__ == "__main__":
    for kind in KINDS:
        make(kind, seeds=range(1, 6), moves=250)
    for path in saved.KEPT.glob("*.jsonl"):
        if path.stem not in KINDS:
            saved.digest_again(path)
