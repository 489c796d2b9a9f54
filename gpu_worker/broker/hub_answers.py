"""What the hub's API answers, in closed types; an answer that is none is its silence. Calls block."""

import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec

from bulletin.errors import NotAllowed
from bulletin.hub_scopes import READ_GROUPS_SCOPE
from bulletin.wire.frames import UNREADABLE

_HUB_TIMEOUT_S = 10.0
#: No answer of the hub about one user is longer.
_MOST_BYTES = 2**22
#: What the hub answers to tokens that it does not know, or that may not see something; and of what it does not have.
_FORBIDDEN, _MISSING = (401, 403), (404,)
AWAY = "The hub could not be asked who you are: it does not answer. Try again in a moment."
_UNREADABLE = "The hub's answer to who you are could not be read. Try again in a moment."
_FORBIDS_GROUPS = (
    "The hub does not show the pool what your group has, and rules of the quota file ask for it. Tell the pool's "
    f"admins: its service needs the scope {READ_GROUPS_SCOPE} of the hub."
)


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


class HubForbids(HubSilent):
    """The hub does not let the pool's service see it."""


class HubAway(HubSilent):
    """The hub does not answer at all."""


class UserAnswer(msgspec.Struct, frozen=True):
    """What the hub says of a user, as far as the pool wants to know it."""

    name: str = ""
    groups: tuple[str, ...] | None = None  #: None where the token may not read them
    admin: bool = False


class TokenAnswer(UserAnswer, frozen=True):
    """What the hub says of a token."""

    kind: str = "user"
    scopes: tuple[str, ...] | None = None


class _GroupAnswer(msgspec.Struct, frozen=True):
    """What the hub says of a group."""

    properties: dict[str, object] = {}


Answer = TypeVar("Answer", bound=msgspec.Struct)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else: a token is for the hub alone."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def ask_of_token(hub: Hub, token: str) -> TokenAnswer | None:
    """Ask whose a token is; None where the hub does not know it. Raises HubSilent.

    What names nobody, or shows no scopes, is no answer of a hub: a proxy may say so, or a hub that is not up yet.
    """
    answer = _get(hub, "/user", token, TokenAnswer, none_at=_FORBIDDEN)
    if answer is not None and (not answer.name or answer.scopes is None):
        raise HubSilent(_UNREADABLE)
    return answer


def ask_of_user(hub: Hub, user: str) -> UserAnswer | None:
    """Ask about a user; None where the hub has no such user, or does not show them to the service. Raises HubSilent."""
    return _get(hub, f"/users/{urllib.parse.quote(user, safe='')}", hub.token, UserAnswer)


def ask_of_group(hub: Hub, group: str) -> dict[str, object]:
    """Ask which properties a group has; none where there is no such group. Raises HubForbids and HubSilent."""
    path = f"/groups/{urllib.parse.quote(group, safe='')}"
    answer = _get(hub, path, hub.token, _GroupAnswer, none_at=_MISSING, forbidden=HubForbids(_FORBIDS_GROUPS))
    return {} if answer is None else answer.properties


def _get(
    hub: Hub,
    path: str,
    token: str,
    model: type[Answer],
    *,
    none_at: Collection[int] = _FORBIDDEN + _MISSING,
    forbidden: HubForbids | None = None,
) -> Answer | None:
    """Get an answer of the hub, None at these status codes. Raises HubSilent, and `forbidden` where that is given."""
    request = urllib.request.Request(  # noqa: S310  the hub's own address, from the environment it gave us
        hub.url + path, headers={"Authorization": f"token {token}", "Accept": "application/json"}
    )
    try:
        with _opener.open(request, timeout=_HUB_TIMEOUT_S) as answer:
            return msgspec.json.decode(answer.read(_MOST_BYTES), type=model)
    except urllib.error.HTTPError as error:
        error.close()
        if forbidden is not None and error.code in _FORBIDDEN:
            raise forbidden from None
        if error.code in none_at:
            return None
        raise HubSilent(
            f"The hub could not say who you are (it answered {error.code}). Try again in a moment."
        ) from None
    except UNREADABLE:
        raise HubSilent(_UNREADABLE) from None
    except (OSError, ValueError, http.client.HTTPException):
        raise HubAway(AWAY) from None
