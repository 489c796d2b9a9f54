"""`configure(c)`: everything that a hub needs to know about Bulletin, in one call from jupyterhub_config.py.

A kernel proves who it is with the token its server already has. The hub answers `GET /hub/api/user` for that token
with the user's name and, in `scopes`, what the token may do: the broker lets in who holds `ACCESS_SCOPE`.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal

import msgspec
from jupyterhub.roles import get_default_roles
from traitlets.config import Config
from traitlets.config.loader import LazyConfigValue
from traitlets.utils.importstring import import_item

from bulletin.errors import BadConfig
from bulletin.hub_scopes import (
    ACCESS_SCOPE,
    ADMIN_PAGE_SCOPE,
    LEAD_SCOPE,
    MANAGE_SCOPE,
    METRICS_SCOPE,
    NAMED_LEAD_SCOPE,
    READ_GROUPS_SCOPE,
    READ_USERS_SCOPE,
    SERVICE,
)
from bulletin_spawner.notebook_kinds import NotebookKind, read_kinds
from bulletin_spawner.ports import hold_port
from bulletin_spawner.spawner import with_bulletin

#: How long a hub waits for the service at its start, in seconds. A hub that waits in vain ends.
START_S = 120
#: Where the page listens if nothing else is said: no port that a system gives out by itself.
PORT = 9711
#: A shorter token can be guessed.
LEAST_TOKEN = 32
#: What Prometheus may do on the hub.
READER_ROLE = {
    "name": "bulletin-metrics",
    "description": "Read what is counted of the GPU pool and of the hub",
    "scopes": [METRICS_SCOPE, ACCESS_SCOPE],
}


def configure(
    c: Config,
    *,
    folder: Path | str,
    isolation: Literal["unix-user", "shared"] | None = None,
    groups: Sequence[str] | None = None,
    managers: Sequence[str] = (),
    manage_from_servers: bool = False,
    pool_args: Sequence[str] = (),
    start_pool: bool = True,
    api_token: str | None = None,
    port: int = PORT,
    metrics_token: str | None = None,
    notebooks: Sequence[NotebookKind | dict[str, object]] = (),
) -> None:
    """Give a hub a pool: its service and page, who may use it, and servers whose kernels find it.

    Call it after the hub's own `spawner_class`, `load_roles`, `services` and `server_token_scopes` are set: it adds to
    them. The spawner class stays what it is, with `BulletinMixin` before it.

    Parameters
    ----------
    c
        The hub's configuration, as jupyterhub_config.py knows it.
    folder
        Where the pool keeps its keys, its database and its logs. Belongs to the hub's Unix user alone.
    isolation
        Whose Unix user cells run as; there is no default. "unix-user": that of the hub user's name, for which the hub
        runs as root. "shared": the hub's own, so that whoever runs cells can read and change everything of everybody
        else's, and of the hub. None if the pool runs on its own, with an isolation of its own.
    groups
        Hub groups whose members may use the pool; None is every user. The hub's admins may in any case.
    managers
        Hub groups whose members see who uses the pool, and manage it. The hub's admins do in any case.
    manage_from_servers
        True if they may also from a terminal or a notebook of their own server, by its token. Then whatever code runs
        there may, too: a notebook from the net, or somebody with whom the server is shared. Else they ask the hub for
        a token of its own for it.
    pool_args
        Options for `bulletin pool`. They are visible in the list of processes: no secrets.
    start_pool
        False if the pool runs on its own, in the same folder, and outlives the hub. It may be another Unix user's.
    api_token
        The service's token to the hub's API, which such a pool has in its environment (`JUPYTERHUB_API_TOKEN`). None:
        the hub draws one.
    port
        Where the page listens on this host, behind the hub's proxy. The hub holds it while it runs, so that nobody
        else gets it. 0: any free one.
    metrics_token
        A token by which Prometheus may read what is counted of the pool, and of the hub: at least 32 letters and
        digits, as `openssl rand -hex 32` makes them. None: those whom the hub's roles give the scope `read:metrics`.
    notebooks
        Kinds of notebook that people choose from when they start a server, beside the usual one: those that have GPUs
        of their own. `WHOLE_NOTEBOOK` is one for every hub. None is offered where there is none.

    Raises
    ------
    BadConfig
        If no isolation is chosen, or `Spawner.server_token_scopes` is a function, to which nothing can be added here,
        or somebody else has the port; or the token is too short.
    """
    if start_pool and isolation is None:
        raise BadConfig(
            "configure() needs isolation. 'unix-user': cells run as the Unix user of their hub user's name, for which "
            "the hub runs as root. 'shared': all run as the hub's own, and whoever runs one can read and change "
            "everything of everybody else's, and of the hub."
        )
    folder = Path(folder).resolve()
    command = [sys.executable, "-P", "-m", "bulletin_spawner.service", "--folder", str(folder)]
    command += ["--", "--isolation", str(isolation), *pool_args] if start_pool else ["--no-pool"]
    service = {
        "name": SERVICE,
        "url": f"http://127.0.0.1:{hold_port(port)}",
        "command": command,
        "timeout": START_S,
        "oauth_no_confirm": True,
        # Of its reader: manager or admin, or neither.
        "oauth_client_allowed_scopes": [
            *(MANAGE_SCOPE, LEAD_SCOPE, NAMED_LEAD_SCOPE, ADMIN_PAGE_SCOPE),
            "read:users!user",
        ],
    }
    if api_token is not None:
        service["api_token"] = api_token
    c.JupyterHub.services = [*_configured(c.JupyterHub, "services", []), service, *_readers(metrics_token)]
    c.JupyterHub.custom_scopes = {
        **_configured(c.JupyterHub, "custom_scopes", {}),
        MANAGE_SCOPE: {"description": "Manage the GPU pool and see who uses it"},
        LEAD_SCOPE: {"description": "Lead projects of the GPU pool: see who uses them, cancel, hold and put first"},
        NAMED_LEAD_SCOPE: {"description": "Set quotas inside projects of the GPU pool that one is a lead of"},
    }
    c.JupyterHub.load_roles = [
        *_roles(_configured(c.JupyterHub, "load_roles", []), groups, managers),
        *({**READER_ROLE, "services": [one["name"]]} for one in _readers(metrics_token)),
    ]
    if groups is None:
        c.JupyterHub.extra_user_scopes = {
            *_configured(c.JupyterHub, "extra_user_scopes", set()),
            ACCESS_SCOPE,
            NAMED_LEAD_SCOPE,
        }

    own = [ACCESS_SCOPE, *([MANAGE_SCOPE, LEAD_SCOPE, ADMIN_PAGE_SCOPE] if manage_from_servers else [])]
    c.Spawner.server_token_scopes = _server_token_scopes(_configured(c.Spawner, "server_token_scopes", []), own)
    c.BulletinMixin.pool_folder = str(folder)
    c.BulletinMixin.notebook_kinds = [msgspec.structs.asdict(kind) for kind in read_kinds(notebooks)]
    c.JupyterHub.spawner_class = with_bulletin(_spawner_class(_configured(c.JupyterHub, "spawner_class", "default")))


def _configured(section: Config, name: str, default: Any) -> Any:
    """Return what the config file has set so far, or has added to the default."""
    value = section.get(name, default)
    return value.get_value(default) if isinstance(value, LazyConfigValue) else value


def _readers(token: str | None) -> list[dict[str, Any]]:
    """Return the service of the hub by which Prometheus is known, if there is a token for it."""
    if token is None:
        return []
    if len(token) < LEAST_TOKEN:
        raise BadConfig(
            f"configure(metrics_token=...) has {len(token)} letters: who guesses it reads what all projects do. "
            "Make one with: openssl rand -hex 32"
        )
    return [{"name": "bulletin-metrics", "api_token": token, "display": False}]


def _roles(
    given: Sequence[dict[str, Any]], groups: Sequence[str] | None, managers: Sequence[str]
) -> list[dict[str, Any]]:
    """Add our roles to those given: the service looks users up, members use the pool, managers manage it."""
    roles = list(given)
    roles.append(
        {
            "name": "bulletin-service",
            "description": "Look up users and their groups, and what these are",
            "services": [SERVICE],
            "scopes": [READ_USERS_SCOPE, "read:users:groups", READ_GROUPS_SCOPE],
        }
    )
    if groups is not None:
        roles.append(
            {
                "name": "bulletin-users",
                "description": "Send cells to the GPU pool",
                "groups": list(groups),
                "scopes": [ACCESS_SCOPE, NAMED_LEAD_SCOPE],
            }
        )
    if managers:
        roles.append(
            {
                "name": "bulletin-managers",
                "description": "Manage the GPU pool",
                "groups": list(managers),
                "scopes": [ACCESS_SCOPE, MANAGE_SCOPE],
            }
        )
    return roles


def _server_token_scopes(given: Sequence[str] | Callable[..., object], own: Sequence[str]) -> list[str]:
    """Return what a server's token may do: setting this replaces the `server` role's scopes, so they are added again.

    The hub grants the part that the user holds, so that asking for `ACCESS_SCOPE` gives it to nobody.
    """
    if callable(given):
        raise BadConfig(
            f"Spawner.server_token_scopes is a function. Let it return {', '.join(map(repr, own))} too, "
            "and set it after configure()."
        )
    return [*(given or _default_scopes("server")), *own]


def _default_scopes(role: str) -> list[str]:
    return next(list(known["scopes"]) for known in get_default_roles() if known["name"] == role)


def _spawner_class(named: str | type) -> type:
    """Find the class behind a hub's `spawner_class`: a class, its import path, or the name of an entry point."""
    if isinstance(named, type):
        return named
    points = entry_points(group="jupyterhub.spawners", name=named.lower())
    found: type = next(iter(points)).load() if points else import_item(named)
    return found
