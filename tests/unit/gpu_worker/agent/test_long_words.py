"""What is long to read that a notebook, or a stranger, says to the agent, which others wait for meanwhile."""

import asyncio
from pathlib import Path

from bulletin.codes import LeaseEnd
from bulletin.ids import CellId
from bulletin.rate_limiter import RateLimiter
from bulletin.wire import messages as wire
from tests.unit.gpu_worker.agent.agent_parts import agent_parts

#: Of a parcel with this many parts a message has a megabyte, and each is read as one number.
MANY = (1,) * 2**20
RUN = wire.Run(cell=CellId("c"), source="", number=1, parcel=wire.Parcel(sizes=MANY))


def test_a_notebook_that_says_long_words_without_end_has_its_session_ended_and_no_other_has(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            agent.server._said = RateLimiter(1, 16 * 2**20, lambda: 0.0)  # by a clock that stands still
            loud, quiet = agent.session("loud", "eve"), agent.session("quiet")
            eve, ada = agent.kernel(), agent.kernel()
            await eve.attach(loud)
            await ada.attach(quiet)
            for _ in range(40):
                await eve.say(RUN)
                assert isinstance(await ada.ask(wire.Ping()), wire.Pong)
                if loud.shutdown.reason is not None:
                    break
            assert loud.shutdown.reason is LeaseEnd.FLOOD
            assert quiet.shutdown.reason is None
            await ada.say(RUN)
            assert isinstance(await ada.hear(), wire.Lost), "one long word is heard"
            assert quiet.shutdown.reason is None

    asyncio.run(main())


def test_of_who_has_shown_no_ticket_nothing_long_is_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernel = agent.session("l1"), agent.kernel()
            assert isinstance(await kernel.ask(RUN), wire.Unknown), "a notebook whose link broke is to show its ticket"
            assert isinstance(await kernel.attach(session), wire.Attached)

    asyncio.run(main())
