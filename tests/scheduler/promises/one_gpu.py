"""Histories in which all wait for the same GPU: who has it first?"""

from gpu_worker.scheduler import actions as act
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas

LONG = {"qos": "batch", "closes_ms": 0}


def line(text: str, *happenings: list[hi.At] | hi.At, gpus: int = 1, begin: float = 1000, hold: float = 100) -> str:
    """Play, with one GPU that is used for so long; say in which order those who waited for it had a GPU."""
    seen = look(
        quotas(text),
        nodes(1, gpus),
        at(begin, notebook("holder", "holder", hold, closes_ms=0)),
        *happenings,
        last=begin + hold + 600,
    )
    order = [
        (when, action.session)
        for when, _, actions in seen.log
        for action in actions
        if isinstance(action, act.Grant) and when > begin and action.session != "holder"
    ]
    return " ".join(session for _, session in order)


def ask(second: float, session: str, project: str, *runs: float, **more: object) -> hi.At:
    return at(second, notebook(session, project, *(runs or (10,)), **(LONG | more)))
