"""Access that is taken away is gone: the tokens behind leases and requests are asked again, as long as those are there.

A hot session goes straight to its agent, and asks the broker for nothing; nor does who waits. So once a minute the hub
is asked whether they may still use the pool, and in which projects they are. A hub that does not answer takes nothing
from anybody. A server that has stopped has lost its token, and its cell may be one that outlives it: such a cell ends
as it would, and no other begins, as long as the hub has the user at all. So it is for who has left the project that
pays. Of a lease that an agent has kept through a restart of the broker no token is known until its kernel speaks, which
it does as soon as it has reached the new broker: until then the hub is asked about its user. Whose kernel goes on in
silence may be one who lost the pool, and does not want to be asked: its cell ends as it would, and no other begins. A
place that is kept between two cells is left to such a one as it would be: an idle kernel has nothing to say.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from bulletin.codes import RefusalCode
from bulletin.errors import NotAllowed
from bulletin.ids import CellId, LeaseId, ProjectId, RequestId, UserName
from bulletin.kept_time import is_kept
from gpu_worker.broker.hub_answers import HubAway, HubSilent
from gpu_worker.broker.identity import Identity, Person, TokenUnknown, UserUnknown
from gpu_worker.broker.kernels import Kernels
from gpu_worker.broker.known_ids import why_reserved
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler.policy.projects import DEFAULT_PROJECT

_EVERY_S = 60.0
#: So long the kernel of a lease of before a restart may take to say who it is.
_SILENT_MS = 120_000
_SILENT = (
    "The pool was restarted, and your notebook has not said since then who it is: run a cell again, or restart the "
    "notebook's kernel."
)


class AccessReview:
    """Ends what is held by tokens that the hub no longer knows, or that may not use the pool or a project any more."""

    def __init__(self, identity: Identity, shell: SchedulerShell, kernels: Kernels, now_ms: Callable[[], int]) -> None:
        self._identity, self._shell, self._kernels, self._now_ms = identity, shell, kernels, now_ms
        #: Of leases that may run no other cell, the one that ran when that was found.
        self._spared: dict[LeaseId, CellId | None] = {}
        #: Since when no token was known of leases.
        self._silent_since_ms: dict[LeaseId, int] = {}
        self._log = structlog.get_logger("broker")

    async def run(self) -> None:
        """Review once a minute, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.review()

    async def review(self) -> None:
        """Ask for each token behind a lease or a request once, one after the other: the hub has others to answer."""
        held: dict[str, list[LeaseId]] = {}
        waiting: dict[str, list[RequestId]] = {}
        for name, active in self._shell.active_leases.items():
            held.setdefault(active.token, []).append(name)
        for request, pending in self._shell.pending_requests.items():
            waiting.setdefault(pending.token, []).append(request)
        now_ms = self._now_ms()
        self._silent_since_ms = {name: self._silent_since_ms.get(name, now_ms) for name in held.get("", [])}
        try:
            for token in (held | waiting).keys() - {""}:
                with self._one_silent():
                    await self._ask(token, held.get(token, []), waiting.get(token, []))
            for user, names in self._by_user(held.get("", [])).items():
                with self._one_silent():
                    await self._ask_about(user, names)
        except HubAway:
            return
        self._spared = {name: cell for name, cell in self._spared.items() if name in self._shell.active_leases}

    @contextmanager
    def _one_silent(self) -> Iterator[None]:
        """Go on where the hub cannot say one thing: what it says of one, users can make unreadable, as by its size.

        Raises HubAway where it does not answer at all.
        """
        try:
            yield
        except HubAway:
            raise
        except HubSilent as error:
            self._log.warning("the hub could not say whether access goes on", problem=error.problem)

    async def _ask(self, token: str, leases: list[LeaseId], requests: list[RequestId]) -> None:
        """Ask for a token, and take from it what it may not have."""
        try:
            person = await self._identity.identify(token, self._now_ms())
        except HubSilent:
            raise
        except NotAllowed as error:
            for request in requests:
                await self._shell.cancel_request(request, error.problem, RefusalCode(error.code))
            await self._kernels.forget_token(token)
            for user, names in self._by_user(leases).items():
                left = await self._find_left(user) if isinstance(error, TokenUnknown) else error
                for name in names:
                    await self._end(name, (left or error).problem, is_to_spare=left is None)
        else:
            await self._take_others(person, leases, requests)

    async def _ask_about(self, user: UserName, leases: list[LeaseId]) -> None:
        """Ask for the user of leases of which no token is known."""
        try:
            person = await self._identity.look_up(user, self._now_ms())
        except UserUnknown as left:
            for name in leases:
                await self._end(name, left.problem, is_to_spare=False)
        else:
            await self._end_others(person, leases)

    async def _find_left(self, user: UserName) -> UserUnknown | None:
        """Ask whether a user has left the hub; None where not, or where nobody can say."""
        try:
            await self._identity.look_up(user, self._now_ms())
        except UserUnknown as left:
            return left
        return None

    def _by_user(self, leases: list[LeaseId]) -> dict[UserName, list[LeaseId]]:
        found: dict[UserName, list[LeaseId]] = {}
        for name in leases:
            if (lease := self._shell.scheduler.state.leases.get(name)) is not None:
                found.setdefault(lease.user, []).append(name)
        return found

    async def _take_others(self, person: Person, leases: list[LeaseId], requests: list[RequestId]) -> None:
        """Take from a person what projects pay for that they are not in any more."""
        for request in requests:
            pending = self._shell.pending_requests.get(request)
            sentence = self._why_not(person, pending.project) if pending is not None else ""
            if sentence:
                await self._shell.cancel_request(request, sentence, RefusalCode.NOT_YOUR_PROJECT)
        await self._end_others(person, leases)

    async def _end_others(self, person: Person | None, leases: list[LeaseId]) -> None:
        """End the leases of a person that projects pay for in which they are not any more, and those that are silent.

        Nobody is known (None) where the hub does not say who its users are.
        """
        for name in leases:
            lease = self._shell.scheduler.state.leases.get(name)
            sentence = self._why_not(person, lease.home) if lease is not None else ""
            if sentence:
                await self._end(name, sentence, is_to_spare=True)
            elif self._now_ms() - self._silent_since_ms.get(name, self._now_ms()) >= _SILENT_MS:
                await self._end(name, _SILENT, is_to_spare=True, is_kept_to_spare=True)
            else:
                self._spared.pop(name, None)  # whoever was taken out is in again

    async def _end(self, name: LeaseId, sentence: str, *, is_to_spare: bool, is_kept_to_spare: bool = False) -> None:
        """Interrupt the cell of a lease, and end it the next time; let an idle session go at once.

        Where `is_to_spare`, the cell that ran when that was found ends as it would; the time between two cells for
        which a place is kept is none, unless that is to be spared, too.
        """
        lease = self._shell.scheduler.state.leases.get(name)
        if lease is None or name not in self._shell.active_leases:
            return
        is_idle = lease.cell is None or (is_kept(lease.cell) and not is_kept_to_spare)
        spared = self._spared.setdefault(name, None if is_idle else lease.cell) if is_to_spare else None
        if not is_idle and spared == lease.cell:
            return
        self._log.info("access has been taken away", lease=name, user=lease.user, cell=lease.cell)
        if not is_idle:
            await self._shell.cancel_cell(name, sentence)
        else:
            await self._shell.evict(name)

    def _why_not(self, person: Person | None, project: ProjectId) -> str:
        """Say why a project may not go on to pay; empty where it may.

        Who has come into a group since has lost nothing by that, nor has who the hub does not show the groups of. A
        reservation that is called as the group may be new.
        """
        is_told = person is not None and person.shows_groups
        if person is not None and is_told and project != DEFAULT_PROJECT and not person.may_charge(project):
            return person.refuse_project(project)
        return why_reserved(self._shell.scheduler.state, project)
