"""What an agent's clock said, and how long ago that was, as a broker hears it late or not."""

import time

from bulletin.wire import messages as wire
from gpu_worker.broker.agent_clock import AgentClock
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, BrokerParts


def test_what_comes_late_is_known_to_be_late_by_what_came_in_time() -> None:
    clock = AgentClock()
    for said_ms, delay_ms in ((1_000, 9), (2_000, 4), (3_000, 30)):
        clock.compare(said_ms, 500_000 + said_ms + delay_ms)
    assert clock.ago_ms(4_000, 504_004) == 0
    assert clock.ago_ms(4_000, 507_004) == 3_000
    assert clock.ago_ms(4_000, 503_999) == 0, "nothing comes from the future"


def test_nothing_is_known_of_an_agent_that_does_not_tell_its_clock() -> None:
    clock = AgentClock()
    assert clock.ago_ms(4_000, 5_000) == 0
    clock.compare(None, 5_000)
    clock.compare(4_000, 5_000)
    assert clock.ago_ms(None, 9_000) == 0


def test_a_clock_that_stood_still_with_its_machine_is_compared_anew() -> None:
    clock = AgentClock()
    clock.compare(0, 1_000)
    for second in range(200):
        clock.compare(second * 1_000, second * 1_000 + 61_000)
    assert clock.ago_ms(200_000, 261_005) == 5


def test_by_how_much_a_clock_of_the_day_is_off_is_told_to_admins_and_a_message_that_was_late_makes_no_difference(
    pool: BrokerParts,
) -> None:
    day_ms = time.time_ns() // 1_000_000
    for late_ms in (0, 60_000):  # the second waited for so long
        pool.report("honest", wire.Ping(day_ms=day_ms + 200_000 - late_ms))
        pool.report("lying", wire.Ping(day_ms=day_ms - late_ms))
    told = {person.user: pool.picture(person).clocks_ahead_ms for person in (ADMIN, ANN)}
    [(node, ahead_ms)] = told[ADMIN.user].items()
    assert node == "honest"
    assert 190_000 < ahead_ms <= 200_000
    assert told[ANN.user] == {}
