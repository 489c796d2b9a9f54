"""Histories by seed of one node, on which somebody needs all that a project is guaranteed beside others of that."""

import random

from bulletin.ids import SessionId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import at, many, node, opens, quotas

_CLASSES = '[qos.interactive]\npatience="{} min"\nwalltime="20 min"\n[qos.batch]\npatience="{} min"\nwalltime="1 h"\n'
_TREES = (
    "[projects.a]\nguaranteed={0}\n",
    '[projects.d]\nguaranteed={1}\n[projects.a]\nparent="d"\nguaranteed={0}\n[projects.b]\nparent="d"\n',
    '[projects.a]\nguaranteed={0}\n[projects.b]\nparent="a"\n',
    '[projects.d]\nguaranteed={0}\n[projects.a]\nparent="d"\n[projects.b]\nparent="d"\n',
    "[projects.a]\nguaranteed={0}\nweight=3\n[projects.b]\nguaranteed={2}\n",
)


def largest_history(seed: int) -> hi.History:
    """Make up one history."""
    draw = random.Random(seed)
    gpus = draw.randrange(2, 5)
    whole = draw.randrange(2, gpus + 1)
    text = _CLASSES.format(draw.choice((5, 10)), draw.choice((5, 20)))
    text += draw.choice(_TREES).format(whole, draw.randrange(whole, gpus + 1), gpus - whole)
    projects = ("a", "a", "b", "guests") if "projects.b" in text else ("a", "a", "guests")
    found = [node("n", gpus)]
    for group in range(draw.randrange(2, 4)):
        project = "a" if not group else draw.choice(projects)
        runs = [draw.choice((120, 300, 600))] * draw.randrange(6, 20)
        found += many(
            draw.randrange(1, gpus + 2), draw.randrange(600), f"s{group}_", project, *runs,
            think=draw.choice((1, 5)), apart=draw.choice((0, 7)), qos=draw.choice(("interactive", "batch")),
            patience_ms=draw.choice((None, None, 40_000)), closes_ms=draw.choice((None, 0, 60_000)),
        )  # fmt: skip
    asks = draw.randrange(300, 1200)
    large = opens(asks, "large", "a", draw.choice((60, 600)), gpus=draw.randrange(2, whole + 1), time=600)
    found.append(large)
    if draw.random() < 0.4:
        found.append(at(asks + draw.randrange(200), hi.ByHand(SessionId("large"), draw.choice(("put-first", "boost")))))
    found.sort(key=lambda one: one.ms)
    delays = hi.Delays(ask_again_ms=draw.choice((500, 3000)), evict_ms=draw.choice((100, 1000)))
    return hi.History(
        seed=seed, begin_ms=1_759_741_200_000, until_ms=4_200_000, settings=quotas(text), delays=delays,
        happenings=tuple(found),
    )  # fmt: skip
