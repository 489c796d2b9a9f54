"""When an agent leaves by itself: in time before its host is taken from it, also where that time is changed."""

import asyncio
import time
from pathlib import Path

import pytest
from msgspec import structs

from bulletin.wire import messages as wire
from gpu_worker.agent.departure import Departed, Departure
from tests.unit.gpu_worker.agent.agent_parts import agent_parts


class Link:
    """What the agent says to its broker, whom it hears."""

    alone_ms = 0
    end = None

    def __init__(self) -> None:
        self.said: list[wire.Message] = []

    async def send(self, message: wire.Message) -> None:
        self.said.append(message)


def test_an_agent_whose_host_has_more_time_stays_and_leaves_when_that_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            settings, link = structs.replace(agent.settings, ends_at_ms=time.time_ns() // 1_000_000), Link()
            departure = Departure(settings, agent.registry, link, agent.faults)  # type: ignore[arg-type]
            assert departure.leaves_in_ms == 0
            departure.move(3_600_000)
            assert 3_500_000 < (departure.leaves_in_ms or 0) <= 3_600_000
            leaves = asyncio.create_task(departure.run())
            await asyncio.sleep(0)
            assert not departure.is_begun
            departure.move(0)
            with pytest.raises(Departed):
                await leaves
            assert link.said == [wire.Leaving(), wire.Left()]

    asyncio.run(main())


def test_an_agent_says_when_it_leaves_only_where_its_job_has_another_end_than_it_began_with(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            now_ms = time.time_ns() // 1_000_000
            settings = structs.replace(agent.settings, ends_at_ms=now_ms + 3_600_000)
            departure = Departure(settings, agent.registry, Link(), agent.faults)  # type: ignore[arg-type]
            assert not departure.follow_host_end(3_600_000, about_ms=60_000)
            assert departure.moved_to_ms is None
            assert departure.follow_host_end(7_200_000, about_ms=60_000)
            assert 7_000_000 < (departure.moved_to_ms or 0) < 7_200_000, "before the job's end"
            assert departure.moved_to_ms == departure.leaves_in_ms
            assert departure.follow_host_end(wire.NEVER_MS, about_ms=60_000)
            assert departure.leaves_in_ms is None, "its job has no limit any more"
            assert departure.moved_to_ms == wire.NEVER_MS, "which its broker is to know"
            assert not departure.follow_host_end(wire.NEVER_MS, about_ms=60_000)
            assert departure.follow_host_end(3_600_000, about_ms=60_000)
            assert 3_000_000 < (departure.leaves_in_ms or 0) < 3_600_000
            departure.move(wire.NEVER_MS)
            assert departure.leaves_in_ms is None

    asyncio.run(main())
