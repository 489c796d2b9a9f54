"""What somebody asked for who has left the project is open no more: once a minute the hub is asked about who asks.

A hub that does not answer, or does not show its users, takes back nothing.
"""

import asyncio
from collections.abc import Callable

import structlog

from gpu_worker.broker.allowance_book import AllowanceBook
from gpu_worker.broker.hub_answers import HubAway, HubSilent
from gpu_worker.broker.identity import Identity, UserUnknown

_EVERY_S = 60.0


class AllowanceReview:
    """Takes back open requests of users who are not in their project any more, or not in the hub."""

    def __init__(self, identity: Identity, book: AllowanceBook, now_ms: Callable[[], int]) -> None:
        self._identity, self._book, self._now_ms = identity, book, now_ms
        self._log = structlog.get_logger("broker")

    async def run(self) -> None:
        """Review once a minute, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.review()

    async def review(self) -> None:
        """Ask about each user who waits for a decision, one after the other: the hub has others to answer."""
        for user in self._book.open_users:
            try:
                person = await self._identity.look_up(user, self._now_ms())
            except UserUnknown:
                await self._book.take_back_all(user)
            except HubAway:
                return
            except HubSilent as error:
                self._log.warning("the hub could not say who asks for more", user=user, problem=error.problem)
            else:
                if person is not None:
                    await self._book.take_back_all(user, but_of=person)
