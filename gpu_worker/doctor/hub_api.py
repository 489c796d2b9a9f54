"""What a hub that runs says to the pool's service: whether it is up, what its token may, its groups and users."""

import email.utils
import http.client
import time
import urllib.error
import urllib.request
from typing import Any

import msgspec

_TIMEOUT_S = 5.0
_MOST_BYTES = 2**24


class HubAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: its status (0 where there was none), what it says, and how far the hub's clock is ahead of ours."""

    status: int = 0
    body: Any = None
    ahead_s: float = 0.0
    problem: str = ""


class HubApi:
    """The API of one hub, asked with the service's token."""

    def __init__(self, url: str, token: str) -> None:
        """Ask the hub whether it is there, and what the token may do. Empty words are of no hub, or of no token."""
        self.url, self._token = url.rstrip("/"), token
        self.root = self._ask("/") if url else HubAnswer(problem="no hub is named")
        self.own = self._ask("/user") if self.is_up and token else HubAnswer()

    @property
    def is_up(self) -> bool:
        """Whether it answers as a hub does."""
        return (
            self.root.status == http.HTTPStatus.OK and isinstance(self.root.body, dict) and "version" in self.root.body
        )

    @property
    def scopes(self) -> frozenset[str]:
        """What the token may do; nothing where the hub does not know it."""
        return frozenset(self.own.body.get("scopes", ())) if isinstance(self.own.body, dict) else frozenset()

    def ask_users(self) -> dict[str, tuple[str, ...]] | None:
        """Ask for all users and the groups that each is in; None where the hub does not tell."""
        answer = self._ask("/users") if self.is_up and self._token else HubAnswer()
        if answer.status != http.HTTPStatus.OK or not isinstance(answer.body, list):
            return None
        return {one["name"]: tuple(one.get("groups", ())) for one in answer.body if isinstance(one, dict)}

    def _ask(self, path: str) -> HubAnswer:
        headers = {"Accept": "application/json"} | ({"Authorization": f"token {self._token}"} if self._token else {})
        try:
            request = urllib.request.Request(self.url + path, headers=headers)  # noqa: S310  an admin's own words
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                said = answer.headers.get("Date", "")
                return HubAnswer(
                    status=answer.status,
                    body=msgspec.json.decode(answer.read(_MOST_BYTES)),
                    ahead_s=email.utils.parsedate_to_datetime(said).timestamp() - time.time() if said else 0.0,
                )
        except urllib.error.HTTPError as error:
            error.close()
            return HubAnswer(status=error.code, problem=f"it answers {error.code}")
        except (OSError, ValueError, http.client.HTTPException) as error:
            return HubAnswer(problem=str(getattr(error, "reason", error)))
