"""Who speaks: the hub's word about a token, or the token of the pool's own connection file. Never the client's word."""

import asyncio
import http.client
import json
import os
import pwd
import secrets
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

import msgspec

from bulletin.errors import NotAllowed
from bulletin.hub_scopes import MANAGE_SCOPE
from bulletin.ids import ProjectId, UserName
from bulletin.units import HOUR_MS

#: How long the hub's answer about a token is believed, and for how long more if the hub does not answer.
_BELIEVE_MS, _BELIEVE_STILL_MS = 60_000, HOUR_MS
_HUB_TIMEOUT_S = 10.0
#: Users without a group pay from here.
DEFAULT_PROJECT = ProjectId("default")
#: Who may not know a name is told so.
SOMEONE = UserName("someone else")


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """An identified user."""

    user: UserName
    groups: tuple[str, ...] = ()
    #: May see everybody's names and change the pool.
    is_admin: bool = False
    #: It is the pool's own user, without a hub: any project may pay.
    is_owner: bool = False

    @property
    def project(self) -> ProjectId:
        """Return who pays when nobody says: the first group by name, else the default project."""
        return ProjectId(min(self.groups)) if self.groups else DEFAULT_PROJECT


class Hub(msgspec.Struct, frozen=True, kw_only=True):
    """Where the hub's API is, and the service's own token to it."""

    url: str
    token: str

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> "Hub | None":
        """Return the hub that manages this process as a service, if one does."""
        url, token = environ.get("JUPYTERHUB_API_URL"), environ.get("JUPYTERHUB_API_TOKEN")
        return cls(url=url.rstrip("/"), token=token) if url and token else None


class HubSilent(NotAllowed):
    """The hub could not say."""


class TokenUnknown(NotAllowed):
    """The hub does not know the token: it was revoked, as that of a server is which has stopped."""


class Identity:
    """Answers who a token belongs to; asks the hub at most once a minute for each token."""

    def __init__(self, own_token: str, hub: Hub | None, scope: str) -> None:
        self._own_token, self._hub, self._scope = own_token, hub, scope
        self._believed: dict[str, tuple[int, Person]] = {}

    async def identify(self, token: str, now_ms: int) -> Person:
        """Return the person behind a token, asking the hub where its last answer is too old.

        Raises
        ------
        NotAllowed
            With a sentence for the user: an unknown token, or one that may not use the pool.
        """
        person = self.believed(token, now_ms)
        if person is None:
            self._forget(now_ms)
        if person is None and self._hub is None:
            raise NotAllowed("The pool does not know this connection's token: its connection file is out of date.")
        if person is None:
            try:
                person = await asyncio.to_thread(self._ask_hub, token)
            except HubSilent:
                if token not in self._believed:
                    raise
                return self._believed[token][1]  # a hub that restarts stops nobody who works
            except NotAllowed:
                self._believed.pop(token, None)
                raise
            self._believed[token] = (now_ms + _BELIEVE_MS, person)
        return person

    def believed(self, token: str, now_ms: int) -> Person | None:
        """Return the person behind a token, as far as that is known without asking the hub."""
        if secrets.compare_digest(token.encode(), self._own_token.encode()):
            return Person(user=UserName(_unix_name()), is_admin=True, is_owner=True)
        until_ms, person = self._believed.get(token, (now_ms, None))
        return person if until_ms > now_ms else None

    def _forget(self, now_ms: int) -> None:
        """Drop what is believed no longer, whatever happens."""
        self._believed = {
            known: entry for known, entry in self._believed.items() if entry[0] + _BELIEVE_STILL_MS > now_ms
        }

    def _ask_hub(self, token: str) -> Person:
        assert self._hub is not None
        model = self._get("/user", token)
        if model is None:
            raise TokenUnknown(
                "The hub does not know your server's token. Restart your server from the hub's control panel."
            )
        name, scopes = str(model.get("name", "")), set(model.get("scopes", ()))
        if model.get("kind", "user") != "user" or not name:
            raise NotAllowed("The token belongs to a service of the hub and not to a user.")
        if self._scope not in scopes and self._scope.partition("!")[0] not in scopes:
            raise NotAllowed(
                f"You ({name}) have no access to the GPU pool on this hub. Ask its administrators to add you."
            )
        # The hub shows groups only to tokens that may read them; the service's own may.
        full = self._get(f"/users/{urllib.parse.quote(name, safe='')}", self._hub.token) or model
        groups = tuple(sorted(str(group) for group in full.get("groups", ())))
        is_admin = MANAGE_SCOPE in scopes or full.get("admin") is True
        return Person(user=UserName(name), groups=groups, is_admin=is_admin)

    def _get(self, path: str, token: str) -> dict[str, Any] | None:
        assert self._hub is not None
        request = urllib.request.Request(  # noqa: S310  the hub's own address, from the environment it gave us
            self._hub.url + path, headers={"Authorization": f"token {token}", "Accept": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=_HUB_TIMEOUT_S) as answer:  # noqa: S310
                model = json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (401, 403, 404):
                return None
            raise HubSilent(
                f"The hub could not say who you are (it answered {error.code}). Try again in a moment."
            ) from None
        except (OSError, ValueError, http.client.HTTPException):
            raise HubSilent(
                "The hub could not be asked who you are: it does not answer. Try again in a moment."
            ) from None
        return model if isinstance(model, dict) else None


def _unix_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
