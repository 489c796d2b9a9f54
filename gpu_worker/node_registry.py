"""The nodes of other hosts whose agents may come to a pool: by name, each with its public key, in `nodes.json`.

A command changes the file, and a broker that runs follows it: also one that does not answer lets nobody in who was
removed.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import structlog
from msgspec import structs

from bulletin.errors import BadConfig
from bulletin.ids import AgentId, UserName
from bulletin.wire import keys
from bulletin.wire.keys import EarlierKey, NodesFile, RegisteredNode
from gpu_worker.file_locks import locked

#: So many keys that a node had before are remembered, and one more where that one is to be worth nothing at once.
_MOST_EARLIER = 8
_LONGEST_OWNER = 255
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def check_name(name: str) -> None:
    """Check that a node may be called so. Raises BadConfig."""
    if not _NAME.fullmatch(name):
        raise BadConfig(
            f"{name[:80]!r} is no name for a node: those have 1 to 63 letters, digits, dots, dashes and underscores, "
            "and begin with a letter or a digit. Its host's name is a good one."
        )


def check_owner(owner: str) -> None:
    """Check that a user of the pool may be called so, who has brought a node; empty is nobody. Raises BadConfig."""
    if len(owner) > _LONGEST_OWNER or not owner.isprintable() or owner != owner.strip():
        raise BadConfig(
            f"{owner[:80]!r} is no user of a pool: write the name as the hub has it, of at most {_LONGEST_OWNER} "
            "characters."
        )


def time_of_day_ms() -> int:
    """Return the time of day, in milliseconds since 1970: what commands write into the file, and a broker compares."""
    return time.time_ns() // 1_000_000


class NodeRegistry:
    """The registered nodes, as the file says at each moment."""

    def __init__(self, folder: Path, now_ms: Callable[[], int] = time_of_day_ms) -> None:
        """Take the folder of the pool, and a clock that says the time of day. Nothing is read yet."""
        self.path, self._now_ms = folder / "nodes.json", now_ms
        self._lock = folder / ".nodes.lock"
        self._facts: tuple[int, int, int] | None = None
        self._names: dict[str, str] = {}
        #: Until when the keys among these are accepted that nodes had before.
        self._until_ms: dict[str, int] = {}
        self._added_ms: dict[str, int] = {}
        self._expected: tuple[str, ...] = ()
        self._owners: dict[str, str] = {}
        self._log = structlog.get_logger("broker")

    def read(self) -> tuple[RegisteredNode, ...]:
        """Return all nodes, by name. Raises BadConfig where the file is not as it must be."""
        try:
            return keys.read_private(self.path, NodesFile).nodes
        except FileNotFoundError:
            return ()

    def name_of(self, public_key: str) -> str | None:
        """Return the node that has this key, as of now; None is nobody's, or one whose time is over.

        A file that cannot be trusted lets nobody in.
        """
        self._follow()
        return None if self._is_over(public_key) else self._names.get(public_key)

    def has_expired(self, public_key: str) -> bool:
        """Tell whether a node that is registered had this key until a time that is over, and has another one now."""
        self._follow()
        return self._is_over(public_key)

    def _is_over(self, public_key: str) -> bool:
        return public_key in self._until_ms and self._until_ms[public_key] <= self._now_ms()

    def added_ms(self, public_key: str) -> int | None:
        """Return when the node that has this key was registered, in ms since 1970; None where nobody has it."""
        self._follow()
        return self._added_ms.get(public_key)

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes that are registered now."""
        self._follow()
        return tuple(dict.fromkeys(self._names.values()))

    @property
    def public_keys(self) -> Collection[str]:
        """The keys of those that are registered now."""
        self._follow()
        return self._names.keys()

    @property
    def expected(self) -> tuple[str, ...]:
        """Those of them that an admin has registered, and that are to be there."""
        self._follow()
        return self._expected

    def owner_of(self, public_key: str) -> str | None:
        """Return who has brought the node that has this key, for themselves alone; empty where it is the pool's.

        None where nobody has the key, or its time is over.
        """
        self._follow()
        return None if self._is_over(public_key) else self._owners.get(public_key)

    @property
    def owners(self) -> dict[AgentId, UserName]:
        """The nodes that users have brought, for themselves alone: whose each is, by its name."""
        self._follow()
        whose = ((name, self._owners.get(key)) for key, name in self._names.items() if not self._is_over(key))
        return {AgentId(name): UserName(owner) for name, owner in whose if owner}

    def add(
        self,
        name: str,
        public_key: str,
        now_ms: int,
        *,
        replaces: bool,
        is_of_engine: bool = False,
        owner: str = "",
    ) -> None:
        """Register a node; one of this name loses its key by it (`replaces`). Raises BadConfig if there is one.

        A node does not change hands: its file may be with whom it was made for.
        """
        check_name(name)
        with locked(self._lock):
            nodes = {one.node: one for one in self.read()}
            if name in nodes and not replaces:
                raise BadConfig(
                    f"There is a node {name!r} already. Name this one otherwise; or give that one new keys, "
                    f"which revokes its old file: bulletin node add {name} --replace"
                )
            if name in nodes and nodes[name].owner != owner:
                raise BadConfig(
                    f"The node {name!r} is {_whose(nodes[name].owner)}, and would be {_whose(owner)} then. If that is "
                    f"meant, remove it first: bulletin node remove {name}"
                )
            nodes[name] = RegisteredNode(
                node=name, public_key=public_key, added_at_ms=now_ms, is_of_engine=is_of_engine, owner=owner
            )
            self._write(nodes)

    def rotate(self, name: str, public_key: str, accepts_old_ms: int) -> int:
        """Give a registered node another key; those that it has are accepted for so long.

        Returns until when, in milliseconds since 1970. Raises BadConfig if there is no such node to have one, or
        too many that it had are accepted.
        """
        with locked(self._lock):
            nodes = {one.node: one for one in self.read()}
            node = _require(nodes, name)
            if node.is_of_engine:
                raise BadConfig(
                    f"The node {name!r} is a job of the pool's engine, whose keys end with it: the next job has others."
                )
            until_ms = self._now_ms() + accepts_old_ms
            promised = [old for old in node.earlier_keys if old.until_ms > self._now_ms()]
            if accepts_old_ms > 0 and len(promised) >= _MOST_EARLIER:
                raise BadConfig(
                    f"The node {name!r} has {len(promised)} earlier keys whose time is not over, and no room for one "
                    "more: give its agent the file that was made last. Or give it new keys, by which all others are "
                    f"worth nothing at once: bulletin node add {name} --replace"
                )
            # Whose time is over is not forgotten at once: what runs at an agent that has no other one goes on.
            over = [old for old in node.earlier_keys if old not in promised]
            room = max(0, _MOST_EARLIER - 1 - len(promised))
            kept = over[max(0, len(over) - room) :]
            present = EarlierKey(public_key=node.public_key, until_ms=until_ms)
            nodes[name] = structs.replace(node, public_key=public_key, earlier_keys=(*kept, *promised, present))
            self._write(nodes)
        return until_ms

    def remove(self, name: str) -> None:
        """Revoke a node's key. Raises BadConfig if there is no such node."""
        with locked(self._lock):
            nodes = {one.node: one for one in self.read()}
            _require(nodes, name)
            del nodes[name]
            self._write(nodes)

    def _write(self, nodes: dict[str, RegisteredNode]) -> None:
        keys.write_private(self.path, NodesFile(nodes=tuple(nodes[name] for name in sorted(nodes))))

    def _follow(self) -> None:
        """Read the file again where it has changed."""
        try:
            facts = _facts_of(self.path)
            if facts == self._facts:
                return
            nodes = self.read()
            keys_of = {one.node: (one.public_key, *(old.public_key for old in one.earlier_keys)) for one in nodes}
            self._names = {key: one.node for one in nodes for key in keys_of[one.node]}
            self._added_ms = {key: one.added_at_ms for one in nodes for key in keys_of[one.node]}
            self._until_ms = {old.public_key: old.until_ms for one in nodes for old in one.earlier_keys}
            self._expected = tuple(one.node for one in nodes if not one.is_of_engine and not one.owner)
            self._owners = {key: one.owner for one in nodes for key in keys_of[one.node]}
        except OSError:
            return  # the system has no descriptor left, say: it is as it was
        except BadConfig as error:
            self._names, self._until_ms, self._expected, self._owners = {}, {}, (), {}
            self._log.error("no node of another host is let in: their file cannot be used", problem=str(error))
        self._facts = facts


def _whose(owner: str) -> str:
    return f"{owner!r}'s own" if owner else "the pool's"


def _require(nodes: Mapping[str, RegisteredNode], name: str) -> RegisteredNode:
    if name not in nodes:
        known = ", ".join(nodes) or "none"
        raise BadConfig(f"There is no node {name[:80]!r}. Registered are: {known}.")
    return nodes[name]


def _facts_of(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_mode
