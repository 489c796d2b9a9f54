"""Histories by seed of limits inside limits, all of them full, and of people who wait there past their patience."""

import random

import msgspec

from bulletin.ids import AgentId, SessionId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import at, changes, many, node, opens, quotas

_CLASSES = (
    '[qos.interactive]\npatience="{} min"\nwalltime="{} min"\n[qos.batch]\npatience="{} min"\nwalltime="{} min"\n'
)


def limits_history(seed: int) -> hi.History:
    """Make up one history."""
    draw = random.Random(seed)
    text = _CLASSES.format(draw.choice((5, 10)), draw.choice((10, 20)), draw.choice((5, 20)), draw.choice((20, 40)))
    text += draw.choice(("", "running_per_user = 1\n"))
    depth = draw.randrange(1, 4)
    tree, limits = _tree(draw, depth)
    names = [*limits, "guests"]
    found = [node("n0", 16)]
    if draw.random() < 0.3:
        found.append(node("n1", 8))
    for group in range(draw.randrange(2, 6)):
        project = draw.choice(names[:-1]) if group else "p0"
        runs = [draw.choice((30, 100, 300, 570))] * draw.randrange(6, 30)
        found += many(
            draw.randrange(1, 5), draw.randrange(600), f"s{group}_", project, *runs,
            think=draw.choice((0, 1, 5)), apart=draw.choice((0, 7, 100)), qos=draw.choice(("interactive", "batch")),
            closes_ms=draw.choice((None, 0, 60_000)), patience_ms=draw.choice((None, None, 40_000)),
            time=draw.choice((None, None, 600)),
        )  # fmt: skip
    for number in range(draw.choice((1, 1, 2, 4))):
        project, asks = draw.choice(names[:-1]), draw.randrange(60, 1500)
        most = limits[project]
        gpus = draw.randrange(1, most + 1)
        name = f"late{number}"
        found.append(
            opens(asks, name, project, draw.choice((60, 500)), gpus=gpus, qos=draw.choice(("interactive", "batch")),
                  closes_ms=0)
        )  # fmt: skip
        by_hand = draw.choice(("", "", "", "hold", "put-first", "boost"))
        if by_hand:
            moment = asks + draw.randrange(1, 900)
            found.append(at(moment, hi.ByHand(SessionId(name), by_hand)))  # type: ignore[arg-type]
            if by_hand == "hold":
                found.append(at(moment + draw.randrange(1, 900), hi.ByHand(SessionId(name), "release")))
    if draw.random() < 0.2:
        found.append(at(draw.randrange(300, 3000), hi.ByHand(SessionId("s0_0"), draw.choice(("boost", "put-first")))))
    if draw.random() < 0.2:
        edited, _ = _tree(random.Random(seed + 1), depth)
        found.append(changes(draw.randrange(600, 3000), text + edited))
    found.sort(key=lambda one: one.ms)
    delays = hi.Delays(ask_again_ms=draw.choice((500, 3000)), evict_ms=draw.choice((100, 1000)))
    return hi.History(
        seed=seed, begin_ms=1_759_741_200_000, until_ms=6_000_000, settings=quotas(text + tree), delays=delays,
        happenings=tuple(found),
    )  # fmt: skip


def losing_nodes(history: hi.History) -> hi.History:
    """Add a node to a history, and have agents be silent until they come anew: what ran there is lost."""
    draw, gpus = random.Random(history.seed * 7 + 3), {"n0": 16, "more": 4}
    found = [*history.happenings, node("more", gpus["more"])]
    for _ in range(draw.randrange(1, 4)):
        second, name = draw.randrange(600, 5000), draw.choice(list(gpus))
        found.append(at(second, hi.GoesSilent(AgentId(name))))
        found.append(at(second + draw.randrange(1, 60), hi.Joins(AgentId(name), hi.gpus(gpus[name]))))
    return msgspec.structs.replace(history, happenings=tuple(sorted(found, key=lambda one: one.ms)))


def _tree(draw: random.Random, depth: int) -> tuple[str, dict[str, int]]:
    """Write projects one in the other, `p0` the innermost, each but the first with others beside it."""
    text, limit, limits = "", draw.randrange(1, 4), {}
    for level in range(depth):
        limits[f"p{level}"] = limit
        inside = f'parent = "p{level + 1}"\n' if level + 1 < depth else ""
        static = draw.random() < 0.1
        own = draw.choice((0, 0, 1, limit)) if not level else 0
        text += f"[projects.p{level}]\nlimit = {limit}\n{inside}"
        text += f"guaranteed = {limit if static else own}\n" * bool(static or own) + "borrow = false\n" * static
        if level:
            limits[f"b{level}"] = mine = draw.randrange(1, limit + 1)
            text += f'[projects.b{level}]\nparent = "p{level}"\n' + draw.choice(("", f"limit = {mine}\n"))
            text += draw.choice(("", "", "guaranteed = 1\n" if limit > limits["p0"] and mine else ""))
        limit += draw.randrange(0, 3)
    return text, limits
