"""What `bulletin init` is told of a place: typed as options, or asked for."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from bulletin.errors import BadConfig
from gpu_worker.reachability import is_loopback, is_unspecified

Kind = Literal["workstation", "server", "nodes"]
KINDS: tuple[Kind, ...] = ("workstation", "server", "nodes")
#: What Unix calls users and groups, and the hub a group.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,252}")


class SiteAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """What there is, and what files are to be written for it."""

    kind: Kind
    #: Where the files go.
    out: Path
    #: The pool's folder.
    folder: Path
    #: Where the broker listens for nodes; only of several nodes.
    pool_host: str = ""
    #: Where people open the hub.
    host: str = "127.0.0.1"
    #: Of the hub's page, its API, its proxy's, the pool's page, kernels, agents, and a node's kernels.
    ports: tuple[int, int, int, int, int, int, int] = (8000, 8081, 8001, 9711, 9001, 9002, 9003)
    groups: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()
    proxy: str = "configurable-http-proxy"


def check_names(names: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Check the names of groups or users, and return them. Raises BadConfig."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise BadConfig(
                f"{name[:80]!r} is no name of {what}: those have up to 32 letters, digits, dots, dashes and "
                "underscores, and begin with a letter."
            )
    return names


def check_pool_host(host: str) -> str:
    """Check the address at which nodes reach the broker, and return it. Raises BadConfig."""
    if not _ADDRESS.fullmatch(host) or is_loopback(host) or is_unspecified(host):
        raise BadConfig(
            f"{host[:80]!r} is no address by which nodes reach this host: `ip address` shows its own. "
            "Example: --pool-host=10.77.0.1"
        )
    return host


def ask_for(question: str, default: str, check: Callable[[str], object] = str) -> str:
    """Ask on the terminal until the answer passes the check, which raises BadConfig; an empty one is the default."""
    while True:
        shown = f" [{default}]" if default else ""
        said = input(f"{question}{shown}: ").strip() or default
        try:
            check(said)
        except BadConfig as error:
            print(f"  {error}")  # noqa: T201  a conversation
        else:
            return said


def split_names(text: str) -> tuple[str, ...]:
    """Take names apart, at commas and blanks."""
    return tuple(dict.fromkeys(re.split(r"[,\s]+", text.strip()))) if text.strip() else ()
