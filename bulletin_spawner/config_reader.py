"""Reads a hub's configuration for `bulletin doctor`: `python -m bulletin_spawner.config_reader FILE` prints HubFacts.

It runs the file, as the hub does at its start, and in the hub's own environment; it starts nothing.
"""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bulletin import __version__
from bulletin.errors import BulletinError
from bulletin.hub_facts import HubFacts
from bulletin.hub_scopes import SERVICE


def read_config(path: Path) -> HubFacts:
    """Run a configuration file of a hub and return what it says. Whatever it raises is the facts' `problem`."""
    from traitlets.config import Application
    from traitlets.config.loader import PyFileConfigLoader

    try:
        config = PyFileConfigLoader(path.name, path=str(path.parent)).load_config()
        from jupyterhub.app import JupyterHub

        return _collect(JupyterHub(config=config), config)
    except (BulletinError, SystemExit) as error:
        return HubFacts(problem=str(error), bulletin_version=__version__)
    except Exception as error:  # noqa: BLE001  whatever somebody's file raises
        return HubFacts(problem=_describe(error, path), bulletin_version=__version__)
    finally:
        Application.clear_instance()


def _describe(error: Exception, path: Path) -> str:
    """Say what a file raised, and in which of its lines."""
    steps = [step.lineno for step in traceback.extract_tb(error.__traceback__) if step.filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) else (steps[-1] if steps else None)
    where = f"line {line}: " if line else ""
    words = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{where}{type(error).__name__}: {words}"


def _collect(hub: Any, config: Any) -> HubFacts:
    from jupyterhub.proxy import ConfigurableHTTPProxy
    from jupyterhub.spawner import LocalProcessSpawner

    from bulletin_spawner.spawner import BulletinMixin

    service: dict[str, Any] = next((one for one in hub.services if one.get("name") == SERVICE), {})
    command = [str(word) for word in service.get("command", [])]
    roles = [role for role in hub.load_roles if SERVICE in role.get("services", [])]
    ours = [role for role in hub.load_roles if role.get("name") in ("bulletin-users", "bulletin-managers")]
    spawner = hub.spawner_class
    login = hub.authenticator_class(parent=hub)
    scopes = config.Spawner.get("server_token_scopes", ())
    is_own_proxy = issubclass(hub.proxy_class, ConfigurableHTTPProxy)
    proxy = config.ConfigurableHTTPProxy
    hub_url = hub.hub_bind_url or f"http://{hub.hub_ip}:{hub.hub_port}"
    listeners = [("the hub's own API", hub_url)]
    if is_own_proxy:
        listeners += [
            ("the hub's proxy", hub.bind_url),
            ("the API of the hub's proxy", proxy.get("api_url", "http://127.0.0.1:8001")),
        ]
    return HubFacts(
        bulletin_version=__version__,
        is_configured=bool(service) and "bulletin_spawner.service" in command,
        folder=_word_after(command, "--folder"),
        starts_pool="--no-pool" not in command,
        pool_words=tuple(command[command.index("--") + 1 :]) if "--" in command else (),
        service_token=service.get("api_token", ""),
        service_scopes=tuple(scope for role in roles for scope in role.get("scopes", [])),
        spawner=spawner.__name__,
        has_mixin=issubclass(spawner, BulletinMixin),
        is_local=issubclass(spawner, LocalProcessSpawner),
        server_command=tuple(map(str, config.Spawner.get("cmd", ["jupyterhub-singleuser"]))),
        server_scopes=None if callable(scopes) else tuple(scopes),
        pool_groups=tuple(sorted({group for role in ours for group in role.get("groups", [])})),
        groups=tuple(sorted(hub.load_groups)),
        manages_groups=bool(login.manage_groups),
        users=tuple(sorted({*login.allowed_users, *login.admin_users, *_members(hub.load_groups)})),
        proxy_command=tuple(map(str, _listed(proxy.get("command", ["configurable-http-proxy"]))))
        if is_own_proxy and proxy.get("should_start") is not False
        else (),
        listeners=tuple(_listener(what, url) for what, url in listeners),
        api_url=f"{hub_url.rstrip('/')}{hub.base_url}hub/api",
    )


def _listed(words: str | Sequence[str]) -> Sequence[str]:
    return [words] if isinstance(words, str) else words


def _members(groups: dict[str, Any]) -> set[str]:
    """Return who is in a hub's groups; an older form lists the members by themselves."""
    return {
        user for group in groups.values() for user in (group.get("users", []) if isinstance(group, dict) else group)
    }


def _word_after(words: Sequence[str], name: str) -> str:
    return words[words.index(name) + 1] if name in words else ""


def _listener(what: str, url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return what, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def main() -> None:
    """Print the facts of the file that is named, as JSON; what the file itself prints goes to standard error."""
    shown, sys.stdout = sys.stdout, sys.stderr
    facts = read_config(Path(sys.argv[1]).absolute())
    shown.write(msgspec.json.encode(facts).decode())


if __name__ == "__main__":
    main()
