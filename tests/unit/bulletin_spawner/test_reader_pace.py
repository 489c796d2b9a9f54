"""A flood of requests of one reader, while another looks at the pages now and then."""

import asyncio

from bulletin_spawner.service.page_problems import describe_problem
from bulletin_spawner.service.reader_pace import AT_ONCE, MOST, ReaderPace


def test_who_asks_too_often_is_refused_and_nobody_else_is() -> None:
    async def scenario() -> int:
        pace, answered = ReaderPace(later_s=0, turns_per_s=1e9), 0
        while await pace.admit("eve"):
            answered += 1
            assert answered < 100 * MOST
            assert answered % MOST or await pace.admit("ann")
        assert await pace.admit("ann")
        return answered

    assert asyncio.run(scenario()) >= MOST


def test_of_a_hundred_requests_of_one_reader_at_once_few_come_before_anothers() -> None:
    async def scenario() -> list[str]:
        pace, answered = ReaderPace(turns_per_s=1e-6), list[str]()

        async def ask(reader: str) -> None:
            assert await pace.admit(reader)
            answered.append(reader)

        asking = [asyncio.create_task(ask("eve")) for _ in range(100)]
        await asyncio.create_task(ask("ann"))
        for one in asking:
            one.cancel()
        await asyncio.wait(asking)
        return answered

    assert len(asyncio.run(scenario())) <= AT_ONCE + 1


def test_a_page_that_is_not_shown_for_that_says_so() -> None:
    problem = describe_problem(429)
    assert "in a moment" in " ".join(problem.sentences)
    assert not problem.is_passing, "it does not look again by itself"
