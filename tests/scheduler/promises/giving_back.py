"""Histories in which a lab takes back what it is guaranteed: who has to leave?"""

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas

LONG = 11 * HOUR_S
LAB = "[projects.lab]\nguaranteed = 2\n"


def borrows(second: float, session: str, project: str = "", **more: object) -> hi.At:
    return at(second, notebook(session, project or session, LONG, **({"qos": "batch"} | more)))


def hot(second: float, session: str, **more: object) -> hi.At:
    return at(second, notebook(session, session, 5, **more))


def gone(
    *happenings: hi.At,
    gpus: int = 1,
    number: int = 1,
    size: int = 2,
    text: str = LAB,
    ask_again_ms: int = 1000,
    **more: object,
) -> list[str]:
    """Play: the lab asks at 600 s for so many GPUs; who is asked to leave?"""
    lab = at(600, notebook("lab", "lab", LONG, gpus=gpus, **more))
    seen = look(quotas(text), nodes(number, size), *happenings, lab, last=700, ask_again_ms=ask_again_ms)
    assert seen.wait("lab") <= 32
    return sorted(one for one in seen.opened if seen.asked_to_leave(one))
