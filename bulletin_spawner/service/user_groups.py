"""The hub's groups of a user: they are the user's projects. A token may not show them; the service's own may."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from tornado.httpclient import AsyncHTTPClient, HTTPError, HTTPRequest

from bulletin.errors import NoPool

#: How long the hub's answer is believed, and how many are kept.
_BELIEVE_S, _MOST_KEPT = 60.0, 5_000
_ANSWER_S = 5.0
_MOST_BYTES = 2**20


class _HubUser(msgspec.Struct, frozen=True):
    groups: tuple[str, ...] = ()


class UserGroups:
    """Asks the hub where a token does not say it."""

    def __init__(self, hub_api: str, api_token: str) -> None:
        """Take the address of the hub's API, and the service's own token."""
        self._hub_api, self._api_token = hub_api.rstrip("/"), api_token
        self._known: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()

    async def fetch(self, model: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the groups of whom the hub has described so. Raises NoPool where the hub cannot say."""
        if model.get("kind", "user") != "user":
            return ()
        if "groups" in model:
            return tuple(model["groups"])
        name: str = model["name"]
        found, now_s = self._known.get(name), asyncio.get_running_loop().time()
        if found is None or now_s - found[0] > _BELIEVE_S:
            found = now_s, await self._ask(name)
            self._known[name] = found
            self._known.move_to_end(name)
            while len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
        return found[1]

    async def _ask(self, name: str) -> tuple[str, ...]:
        request = HTTPRequest(
            f"{self._hub_api}/users/{quote(name, safe='')}",
            headers={"Authorization": f"token {self._api_token}", "Accept": "application/json"},
            request_timeout=_ANSWER_S,
            follow_redirects=False,
        )
        try:
            answer = await AsyncHTTPClient().fetch(request)
            return msgspec.json.decode(answer.body[:_MOST_BYTES], type=_HubUser).groups
        except (HTTPError, OSError, msgspec.MsgspecError) as error:
            raise NoPool("The hub does not say which groups you are in.", "Look again in a moment.") from error
