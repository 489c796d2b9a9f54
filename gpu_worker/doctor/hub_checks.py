"""The hub: whether its file can be used, the pool is in it, people may use it, its proxy is there, and it knows us."""

import re
import shutil
from collections.abc import Iterator

from bulletin import __version__
from bulletin.hub_facts import HubFacts
from bulletin.hub_scopes import ACCESS_SCOPE, READ_USERS_SCOPE
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.hub_api import HubApi
from gpu_worker.doctor.pool_setup import PoolSetup

#: What the broker asks the hub about users.
_SERVICE_SCOPES = (READ_USERS_SCOPE, "read:users:groups")
#: More than answers take, and than clocks differ that are kept.
_CLOCK_S = 30.0
#: Python's words where the file asks for a group's members, as the one for Unix users does.
_NO_GROUP = re.compile(r"getgrnam\(\): name not found: '([\w.-]+)'")


def _how_to_start(problem: str) -> str:
    """Say what to do about what ended the reading of the hub's file."""
    if group := _NO_GROUP.search(problem):
        return f"There is no Unix group {group[1]} on this host: `groupadd {group[1]}` makes it."
    return "Correct the file; `bulletin init` writes one that works."


def check_hub_file(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Look at what the hub's own file says."""
    facts, file = setup.hub, setup.hub_file
    if facts is None:
        return
    if facts.problem:
        yield Diagnosis(
            check="hub-config",
            what=f"{file}: {facts.problem.rstrip('.')}.",
            why="The hub does not start with it.",
            remedy=_how_to_start(facts.problem),
        )
        return
    if not facts.is_configured:
        yield Diagnosis(
            check="hub-without-pool",
            what=f"{file} does not call configure() of bulletin_spawner.setup.",
            why="The hub has no pool: %%gpu says that there is none.",
            remedy="Call it at the end of the file, as docs/howto/your-hub.md shows.",
        )
        return
    yield from _check_versions(facts)
    yield from _check_scopes(facts)
    yield from _check_proxy(facts)
    if not facts.has_mixin:
        yield Diagnosis(
            check="hub-spawner",
            what=f"The hub's spawner is {facts.spawner}, which does not tell servers where the pool is.",
            why="It was set after configure(), which had put BulletinMixin before it: %%gpu finds no pool.",
            remedy="Set c.JupyterHub.spawner_class before configure(c, ...).",
        )


def _check_versions(facts: HubFacts) -> Iterator[Diagnosis]:
    if facts.bulletin_version != __version__:
        yield Diagnosis(
            check="hub-version",
            what=f"The hub has Bulletin {facts.bulletin_version}, and this is {__version__}.",
            why="Page and pool may not understand each other.",
            remedy="Install the same version in both environments.",
        )


def _check_scopes(facts: HubFacts) -> Iterator[Diagnosis]:
    if facts.server_scopes is None or ACCESS_SCOPE not in facts.server_scopes:
        found = "are decided by a function" if facts.server_scopes is None else "do not have it"
        yield Diagnosis(
            check="server-scopes",
            what=f"Notebooks need the scope {ACCESS_SCOPE}, and c.Spawner.server_token_scopes {found}.",
            why="They were set after configure(), or replace what it set: every %%gpu cell is refused.",
            remedy="Set them before configure(c, ...), or add the scope to them.",
            level="advice" if facts.server_scopes is None else "wrong",
        )
    if missing := [one for one in _SERVICE_SCOPES if one not in facts.service_scopes]:
        yield Diagnosis(
            check="service-role",
            what=f"No role gives the service 'bulletin' the scopes {', '.join(missing)}.",
            why="c.JupyterHub.load_roles was set after configure(): the pool cannot ask who somebody is.",
            remedy="Set load_roles before configure(c, ...), or add to it afterwards.",
        )
    unknown = [] if facts.manages_groups else [one for one in facts.pool_groups if one not in facts.groups]
    if unknown and facts.groups:
        yield Diagnosis(
            check="pool-group",
            what=f"configure() names the groups {', '.join(unknown)}, and c.JupyterHub.load_groups does not.",
            why="Nobody is in a group that is not there: those whom it is meant for may not use the pool.",
            remedy=f"Correct the name, or make the group; those of the file are: {', '.join(facts.groups)}.",
        )


def _check_proxy(facts: HubFacts) -> Iterator[Diagnosis]:
    program = next(iter(facts.proxy_command), "")
    if program and shutil.which(program) is None:
        yield Diagnosis(
            check="proxy",
            what=f"The hub's proxy is to be {program}, and there is no such program.",
            why="Without it the hub does not start.",
            remedy="Run: npm install -g configurable-http-proxy; or say where it is: "
            "c.ConfigurableHTTPProxy.command = ['/path/configurable-http-proxy'].",
        )
    elif program.endswith("configurable-http-proxy") and shutil.which("node") is None:
        yield Diagnosis(
            check="proxy",
            what=f"The hub's proxy {program} is a program for Node.js, and there is no `node`.",
            why="Without it the hub does not start.",
            remedy="Install Node.js 20 or newer, for instance: apt install nodejs.",
        )


def check_hub_answers(setup: PoolSetup, hub: HubApi) -> Iterator[Diagnosis]:
    """Ask the hub by the words that the pool's own programs have, where these are known."""
    url, token = (setup.hub_environ.get(name, "") for name in ("JUPYTERHUB_API_URL", "JUPYTERHUB_API_TOKEN"))
    facts = setup.hub
    if facts is not None and facts.service_token and token and token != facts.service_token:
        yield Diagnosis(
            check="token-differs",
            what="The pool's token to the hub (JUPYTERHUB_API_TOKEN) is not the one that the hub has (api_token).",
            why="The hub does not say to the pool who people are: every %%gpu cell is refused.",
            remedy="Put the same token into both files, and start both again.",
        )
        return
    if facts is not None and facts.is_configured and not facts.starts_pool and not facts.service_token:
        yield Diagnosis(
            check="token-missing",
            what="configure(start_pool=False) has no api_token.",
            why="The hub draws one that the pool does not know, and the pool cannot ask who people are.",
            remedy="Draw one (openssl rand -hex 32), and give it to both: api_token= here, JUPYTERHUB_API_TOKEN there.",
        )
    if not url:
        return
    if not hub.is_up:
        yield Diagnosis(
            check="hub-away",
            what=f"The hub does not answer at {url} (JUPYTERHUB_API_URL): {hub.root.problem or 'it is no hub'}.",
            why="The pool asks it who people are; nobody new gets in meanwhile.",
            remedy="Start the hub, or correct the address: it is hub_bind_url of the hub, with /hub/api.",
        )
        return
    if token and not hub.scopes:
        yield Diagnosis(
            check="token-unknown",
            what="The hub does not know the pool's token (JUPYTERHUB_API_TOKEN).",
            why="The hub does not say to the pool who people are: every %%gpu cell is refused.",
            remedy="Give configure() the same token (api_token=), and start the hub again.",
        )
    elif missing := [one for one in _SERVICE_SCOPES if not _covers(hub.scopes, one)]:
        yield Diagnosis(
            check="service-scopes",
            what=f"The pool's token does not have the scopes {', '.join(missing)} on this hub.",
            why="The pool cannot ask who somebody is, or which projects may pay.",
            remedy="Let a role of the hub give them to the service 'bulletin': configure() does.",
        )
    if abs(hub.root.ahead_s) > _CLOCK_S:
        yield Diagnosis(
            check="clock-hub",
            what=f"The hub's clock is {abs(hub.root.ahead_s):.0f} s {'ahead' if hub.root.ahead_s > 0 else 'behind'}.",
            why="Class hours, budgets and what people read of times go by the clock.",
            remedy="Let both clocks be kept: timedatectl set-ntp true (or chrony).",
        )


def _covers(scopes: frozenset[str], wanted: str) -> bool:
    """Whether scopes of a hub have this one, or one that it is a part of."""
    parts = wanted.split(":")
    return any(":".join(parts[:length]) in scopes for length in range(1, len(parts) + 1)) or "admin:users" in scopes
