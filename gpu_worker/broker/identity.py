"""Who speaks: the hub's word about a token, or a token of the pool's own. Never the client's word.

The hub is asked by threads of its own, few at once, so that who guesses tokens slows neither the ledger nor the hub.
"""

import asyncio
import os
import pwd
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import TypeVar

import msgspec

from bulletin.errors import NotAllowed
from bulletin.hub_scopes import READ_USERS_SCOPE, SERVICE, led_projects, may_be_named_lead, may_manage
from bulletin.ids import ProjectId, UserName
from bulletin.units import HOUR_MS
from gpu_worker.broker.hub_answers import AWAY, Hub, HubAway, HubSilent, ask_of_group, ask_of_token, ask_of_user
from gpu_worker.broker.seen_groups import readable
from gpu_worker.scheduler.policy.projects import DEFAULT_PROJECT

#: How long the hub's answer about a token is believed, and for how long more if the hub does not answer.
_BELIEVE_MS, _BELIEVE_STILL_MS = 60_000, HOUR_MS
#: How long all of an answer may take, whose parts come one by one.
_ANSWER_S = 20.0
#: So many questions to the hub at once; so many about tokens that were never heard of, which anybody can show; and so
#: many about groups. What is left is for who is known.
_THREADS, _STRANGERS, _GROUPS = 6, 3, 2
#: How long a token that the hub refused is refused without asking again, and how many of them are remembered.
_REFUSE_MS, _MOST_REFUSED = 10_000, 10_000
#: How long a hub that did not answer is not asked again.
_REST_MS = 1_000
_UNKNOWN = "The hub does not know your server's token. Restart your server from the hub's control panel."


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """An identified user."""

    user: UserName
    groups: tuple[str, ...] = ()
    #: The hub said so. Where it does not show groups, they are as if there were none, and nothing is taken for that.
    shows_groups: bool = True
    #: May see everybody's names and change the pool, by the token that is shown.
    is_admin: bool = False
    #: Is lead of the projects that name them so in the quota file, too: the token that is shown may be.
    may_be_named_lead: bool = False
    #: Is an admin of the hub, and shows a token that may not: that of their notebook server.
    lacks_scope: bool = False
    #: It is the pool's own user, without a hub: any project may pay.
    is_owner: bool = False
    #: The projects that they lead, with all that is in them.
    leads: tuple[ProjectId, ...] = ()
    #: It is the hub's page, which asks in the name of its readers.
    is_page: bool = False
    #: Where a person speaks from, as they are told it; empty where that is a command or a notebook server's page.
    place: str = ""

    @property
    def project(self) -> ProjectId:
        """Return who pays when nobody says: the first group by name, else the default project."""
        return ProjectId(min(self.groups)) if self.groups else DEFAULT_PROJECT

    @property
    def has_other_projects(self) -> bool:
        """Tell whether more than one project may pay for what this person asks for."""
        return self.is_owner or len(self.groups) > 1

    def may_charge(self, project: ProjectId) -> bool:
        """Tell whether this project may pay for what this person asks for."""
        return self.is_owner or project in (*self.groups, self.project)

    def refuse_project(self, project: ProjectId) -> str:
        """Say that this project may not pay for what this person asks for."""
        mine = ", ".join(self.groups) or self.project
        return f"you are not in the project {project!r}. Your projects: {mine}."


#: What a group has on the hub, by name.
Properties = tuple[tuple[str, str], ...]
Word = TypeVar("Word")
Answered = TypeVar("Answered")


class TokenUnknown(NotAllowed):
    """The hub does not know the token: it was revoked, as that of a server is which has stopped."""


class UserUnknown(NotAllowed):
    """The hub has no such user: whoever it was has left."""


class Identity:
    """Answers who a token belongs to; asks the hub at most once a minute for each token."""

    def __init__(self, own_token: str, hub: Hub | None, scope: str) -> None:
        self._own_token, self._hub, self._scope = own_token, hub, scope
        self._believed: dict[str, tuple[int, Person]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, "hub")
        self._strangers = asyncio.Semaphore(_STRANGERS)
        self._asking: dict[str, asyncio.Task[Person]] = {}
        self._few_groups = asyncio.Semaphore(_GROUPS)
        self._asking_of: dict[str, asyncio.Task[Properties]] = {}
        #: Groups of which the hub could not say anything, until when and why; the oldest first.
        self._unsaid: dict[str, tuple[int, HubSilent]] = {}
        #: Tokens (as digests) that the hub refused, until when and why; the oldest first.
        self._refused: dict[bytes, tuple[int, NotAllowed]] = {}
        #: Tokens of which the hub said nothing when it was asked last, and until when it is not asked again.
        self._unanswered: dict[str, int] = {}
        self._away_until_ms = 0

    def close(self) -> None:
        """Ask the hub nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def identify(self, token: str, now_ms: int) -> Person:
        """Return the person behind a token, asking the hub where its last answer is too old.

        Raises
        ------
        NotAllowed
            With a sentence for the user: an unknown token, or one that may not use the pool.
        """
        person = self.believed(token, now_ms)
        if person is not None:
            return person
        if self._hub is None:
            raise NotAllowed("The pool does not know this connection's token: its connection file is out of date.")
        self._forget(now_ms)
        if token in self._unanswered:
            return self._believed[token][1]
        until_ms, refusal = self._refused.get(_digest(token), (now_ms, None))
        if refusal is not None and until_ms > now_ms:
            raise refusal.with_traceback(None)
        asking = self._asking.get(token)  # of many connections that show the same token, the hub is asked once
        if asking is None:
            asking = self._asking[token] = asyncio.create_task(self._ask_and_remember(token, now_ms))
            asking.add_done_callback(lambda _: self._asking.pop(token, None))
        return await asyncio.shield(asking)

    async def look_up(self, user: UserName, now_ms: int) -> Person | None:
        """Return what the hub says of a user now, without any token of theirs; None where nobody can say.

        Raises UserUnknown if the hub has no such user, HubSilent if it does not answer.
        """
        if self._hub is None or user == _unix_name():  # whose leases may have come by the pool's own token
            return None
        if now_ms < self._away_until_ms:
            raise HubAway(AWAY)
        return await self._run(self._ask_about, user)

    async def ask_about_group(self, group: str, now_ms: int) -> Properties:
        """Ask the hub which properties a group has, once for all who ask meanwhile; none where it has no such group.

        Raises HubForbids where the pool's service may not see groups, HubSilent if the hub cannot say.
        """
        if self._hub is None:
            return ()
        asking = self._asking_of.get(group)
        if asking is None:
            asking = self._asking_of[group] = asyncio.create_task(self._ask_of_few(group, now_ms))
            asking.add_done_callback(lambda _: self._asking_of.pop(group, None))
        return await asyncio.shield(asking)

    async def _ask_of_few(self, group: str, now_ms: int) -> Properties:
        """Ask about a group when few others are asked about; a hub that is silent is not asked again at once."""
        async with self._few_groups:
            if now_ms < self._away_until_ms:  # since then, too: who waited does not wait once more
                raise HubAway(AWAY)
            self._unsaid = {name: entry for name, entry in self._unsaid.items() if entry[0] > now_ms}
            if group in self._unsaid:
                raise self._unsaid[group][1].with_traceback(None)
            began_s = time.monotonic()
            try:
                return await self._run(self._ask_of_group, group)
            except HubSilent as error:
                until_ms = now_ms + round((time.monotonic() - began_s) * 1000) + _REST_MS
                if isinstance(error, HubAway):
                    self._away_until_ms = until_ms
                self._unsaid[group] = until_ms, error
                raise

    async def _ask_and_remember(self, token: str, now_ms: int) -> Person:
        """Ask the hub, and remember what it said. One that showed groups for a token and does not now is silent."""
        known = self._believed[token][1] if token in self._believed else None
        try:
            person = await self._ask_aside(token, now_ms)
        except HubSilent as error:
            if isinstance(error, HubAway):
                self._away_until_ms = now_ms + _REST_MS
            if known is None:
                raise
            self._unanswered[token] = now_ms + _REST_MS
            return known  # a hub that restarts stops nobody who works
        except NotAllowed as error:
            self._believed.pop(token, None)
            self._refused.pop(_digest(token), None)  # the newest last
            self._refused[_digest(token)] = (now_ms + _REFUSE_MS, error)
            raise
        if known is not None and known.groups and not person.shows_groups:
            self._unanswered[token] = now_ms + _REST_MS
            return known
        self._believed[token] = (now_ms + _BELIEVE_MS, person)
        return person

    async def _ask_aside(self, token: str, now_ms: int) -> Person:
        if now_ms < self._away_until_ms:
            raise HubAway(AWAY)
        if not (token.isascii() and token.isprintable()):
            raise TokenUnknown(_UNKNOWN)
        if token in self._believed:
            return await self._run(self._ask_hub, token)
        async with self._strangers:
            return await self._run(self._ask_hub, token)

    async def _run(self, ask: Callable[[Word], Answered], about: Word) -> Answered:
        """Ask by a thread. Raises HubAway where that takes too long: it may go on, and nobody waits for it."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await asyncio.get_running_loop().run_in_executor(self._threads, ask, about)
        except TimeoutError:
            raise HubAway(AWAY) from None

    def believed(self, token: str, now_ms: int) -> Person | None:
        """Return the person behind a token, as far as that is known without asking the hub."""
        if secrets.compare_digest(token.encode(), self._own_token.encode()):
            is_page = self._hub is not None  # without a hub those are notebooks, for which limits hold
            return Person(user=UserName(_unix_name()), is_admin=True, is_owner=True, is_page=is_page)
        if self._hub is not None and secrets.compare_digest(token.encode(), self._hub.token.encode()):
            # The page of a hub that is another Unix user, and reads no file of the pool's: it is of the same service.
            return Person(user=UserName(SERVICE), is_admin=True, is_page=True)
        until_ms, person = self._believed.get(token, (now_ms, None))
        return person if until_ms > now_ms else None

    def _forget(self, now_ms: int) -> None:
        """Drop what is believed no longer, whatever happens."""
        self._believed = {
            known: entry for known, entry in self._believed.items() if entry[0] + _BELIEVE_STILL_MS > now_ms
        }
        self._unanswered = {
            token: until_ms
            for token, until_ms in self._unanswered.items()
            if until_ms > now_ms and token in self._believed
        }
        while self._refused:
            oldest = next(iter(self._refused))
            if len(self._refused) <= _MOST_REFUSED and self._refused[oldest][0] > now_ms:
                return
            del self._refused[oldest]

    def _ask_hub(self, token: str) -> Person:
        assert self._hub is not None
        answer = ask_of_token(self._hub, token)
        if answer is None:
            raise TokenUnknown(_UNKNOWN)
        name, scopes = answer.name, set(answer.scopes or ())
        if answer.kind != "user":
            raise NotAllowed("The token belongs to a service of the hub and not to a user.")
        if self._scope not in scopes and self._scope.partition("!")[0] not in scopes:
            raise NotAllowed(
                f"You ({name}) have no access to the GPU pool on this hub. Ask its administrators to add you."
            )
        # The hub shows groups only to tokens that may read them; the service's own may.
        full = ask_of_user(self._hub, name) or answer
        groups = tuple(sorted(full.groups or answer.groups or ()))
        # Of the token and not of its user: what runs in an admin's notebook server is not always the admin's own code.
        is_hub_admin = full.admin
        is_admin = may_manage(scopes, is_hub_admin=is_hub_admin)
        lacks_scope = is_hub_admin and not is_admin
        return Person(
            user=UserName(name),
            groups=groups,
            shows_groups=full.groups is not None or answer.groups is not None,
            is_admin=is_admin,
            lacks_scope=lacks_scope,
            leads=tuple(map(ProjectId, led_projects(scopes, groups))),
            may_be_named_lead=may_be_named_lead(scopes),
        )

    def _ask_about(self, user: UserName) -> Person | None:
        assert self._hub is not None
        answer = ask_of_user(self._hub, user)
        if answer is not None:
            return None if answer.groups is None else Person(user=user, groups=tuple(sorted(answer.groups)))
        own = ask_of_token(self._hub, self._hub.token)
        if own is None or READ_USERS_SCOPE not in (own.scopes or ()):
            return None  # a hub that shows its users to this service not at all, or some of them
        raise UserUnknown(f"You ({user}) are no user of this hub any more.")

    def _ask_of_group(self, group: str) -> Properties:
        assert self._hub is not None
        return readable(ask_of_group(self._hub, group))


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()


def _unix_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
