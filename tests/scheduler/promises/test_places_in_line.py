"""People begin in the order of the places in line that they are told."""

import msgspec

from bulletin.ids import AgentId, RequestId
from gpu_worker.scheduler.estimates.explain import waiting
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.judge import Judge
from tests.scheduler.promises.seen import HOUR_S, at
from tests.scheduler.promises.stories import H100, L4, LONG, ask, look, quotas


def places_told(history: hi.History, second: float) -> dict[str, int]:
    """Play a history until then, and look up which place in line each session that waits is told."""
    until_ms = round(second * 1000)
    driver = Driver(history, Judge(history))
    driver.history = msgspec.structs.replace(history, until_ms=until_ms)
    driver.play()
    state = driver.scheduler.state
    told = {
        request.session: waiting(state, RequestId(name), history.begin_ms + until_ms)
        for name, request in state.pending.items()
    }
    return {session: one.position for session, one in told.items() if one is not None}


def test_who_waits_for_a_node_that_is_gone_has_no_place_of_the_limit_of_those_behind() -> None:
    seen = look(
        quotas("[projects.lab]\nlimit = 1\n"),
        at(0, hi.Joins(AgentId("fast"), hi.gpus(1, H100))),
        at(0, hi.Joins(AgentId("slow"), hi.gpus(1, L4))),
        at(1, hi.GoesSilent(AgentId("fast"))),
        ask(10, 1, "far", 1000, name="holder", gpu_type="L4", closes_ms=0, **LONG),
        ask(20, 1, "lab", 100, name="gone", gpu_type="H100"),
        ask(30, 1, "lab", 100, name="next", closes_ms=0),
        ask(40, 1, "other", 100, name="last", **LONG),
        last=HOUR_S / 2,
    )
    told = places_told(seen.history, 100)
    assert told["next0"] < told["last0"]
    assert seen.granted("next0") < seen.granted("last0")
