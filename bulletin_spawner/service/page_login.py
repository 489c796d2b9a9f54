"""How people log in to the page: by the hub, as JupyterHub does it; but nobody fills the page's memory with it."""

import asyncio
import hashlib
import re
from typing import Any

from jupyterhub.services.auth import HubOAuth, _ExpiringDict
from traitlets import Dict, default

#: Logins that have begun are remembered for ten minutes; so many of them, of which each takes less than 1 kB.
MOST_LOGINS = 10_000
#: A path of this service to go back to after a login: short, and of no other host.
_PAGE_PATH = re.compile(r"/[a-z0-9][\w/~.-]{0,100}", re.IGNORECASE | re.ASCII)
#: What is chosen on it, as a browser writes that: a project, a stretch of time.
_CHOICES = re.compile(r"[\w=&%.~+-]{1,200}", re.ASCII)
#: The hub's own session ids have 32 characters.
_LONGEST_SESSION_ID = 64
#: So many of the hub's answers are kept, and of one token, which anybody may show beside any session id.
MOST_ANSWERS, MOST_OF_TOKEN = 5_000, 8
#: What of an answer is kept: it may say much of somebody's servers.
_KEPT_FIELDS = ("kind", "name", "admin", "groups", "scopes", "session_id", "token_id")


class _KeptAnswers(_ExpiringDict):  # type: ignore[misc]  # as below
    """What the hub said of tokens, for some minutes; of too many those that it does not know go first."""

    def __setitem__(self, key: str, value: dict[str, Any] | None) -> None:
        """Keep an answer by session and token, which JupyterHub writes with a colon between."""
        kept = value and {name: value[name] for name in _KEPT_FIELDS if name in value}
        super().__setitem__(key, kept)
        token = key.rpartition(":")[2]
        for old in [one for one in self.values if one.endswith(token)][:-MOST_OF_TOKEN]:
            del self[old]
        while len(self.values) > MOST_ANSWERS:
            del self[next((one for one, said in self.values.items() if said is None), next(iter(self.values)))]


class PageLogin(HubOAuth):  # type: ignore[misc]  # jupyterhub has no types
    """JupyterHub's login for services. Anybody may begin one, and show any cookie, before the hub says who it is."""

    #: What the hub is asked now, by each event loop: JupyterHub has one of its own for who would wait for it.
    _asking = Dict()

    @default("cache")
    def _keep_few_answers(self) -> _KeptAnswers:
        return _KeptAnswers(self.cache_max_age)

    async def _check_hub_authorization(
        self,
        url: str,
        api_token: str,
        cache_key: str | None = None,
        use_cache: bool = True,  # noqa: FBT001, FBT002  as JupyterHub calls it
    ) -> dict[str, Any] | None:
        """Ask the hub whose a token is, once for all requests that show it meanwhile."""
        ask = super()._check_hub_authorization
        if not use_cache or cache_key in self.cache:
            found: dict[str, Any] | None = await ask(url, api_token, cache_key, use_cache)
            return found
        key = f"{id(asyncio.get_running_loop())} {cache_key}"
        asking: asyncio.Task[dict[str, Any] | None] | None = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.ensure_future(ask(url, api_token, cache_key, use_cache))
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(asking)

    def recall(self, handler: Any) -> str:
        """Return who asks, if the hub has said so a moment ago, else nothing. It is not asked."""
        token = self.get_token(handler)
        if not token:
            return ""
        digest = hashlib.sha256(token.encode("utf8", "replace")).hexdigest()
        said = self.cache.get(f"token:{self.get_session_id(handler)}:{digest}")  # as JupyterHub keeps it
        if not said or (self.access_scopes and not self.check_scopes(self.access_scopes, said)):
            return ""
        name: str = said["name"]
        return name

    def generate_state(self, next_url: str | None = None, **extra_state: Any) -> str:
        """Remember a login that begins. It leads to the page that was asked for, or to the first."""
        path, _, choices = (next_url or "").partition("?")
        back = path if _PAGE_PATH.fullmatch(path) else None
        if back is not None and _CHOICES.fullmatch(choices):
            back = f"{back}?{choices}"
        states = self._oauth_states
        while len(states) >= MOST_LOGINS:
            states.pop(next(iter(states.timestamps)), None)  # the oldest
        state: str = super().generate_state(back, **extra_state)
        return state

    def get_session_id(self, handler: Any) -> str:
        """Return the hub session that the request is of, by its cookie: what the hub says of a token is kept by it."""
        found: str = super().get_session_id(handler)
        return found if len(found) <= _LONGEST_SESSION_ID else ""
