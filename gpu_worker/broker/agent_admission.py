"""Which agents may speak to a broker, and as what: by the key of their connection, never by their word."""

import secrets
from collections.abc import Callable

from bulletin.ids import UserName
from bulletin.wire import keys, messages as wire
from gpu_worker.node_registry import NodeRegistry

#: The key that a connection was made with; None where it is gone.
KeyOf = Callable[[bytes], str | None]
#: What the agent of the pool's own folder is called here; a node has a name.
_OWN = ""


class AgentAdmission:
    """Knows agents by their keys: that of the pool's own folder, and those of registered nodes."""

    def __init__(self, agent_secret: str, registry: NodeRegistry, key_of: KeyOf, end: Callable[[bytes], None]) -> None:
        """Take what the pool's own agent knows, and what ends a connection."""
        self._secret, self._registry = agent_secret, registry
        self.key_of, self.end = key_of, end
        #: When each node that is registered was first heard of, by this broker's clock.
        self._first_heard_ms: dict[str, int] = {}
        self._own_key = keys.agent_keys(agent_secret).public

    def is_admitted(self, key: str) -> bool:
        """Tell whether who has this key may connect."""
        return self.name_of(key) is not None

    def name_of(self, key: str) -> str | None:
        """Return the node that a key is of, as of now; empty is the pool's own agent, and None is nobody's."""
        return _OWN if self.is_own(key) else self._registry.name_of(key)

    def is_own(self, key: str) -> bool:
        """Tell whether a key is that of the agent of the pool's own folder."""
        return key == self._own_key

    def is_node(self, route: bytes) -> bool:
        """Tell whether a connection is that of a registered node."""
        key = self.key_of(route)
        return key is not None and self._registry.name_of(key) is not None

    def has_expired(self, key: str) -> bool:
        """Tell whether who has this key is a node that has new keys and has not taken them up in time."""
        return self._registry.has_expired(key)

    def owner_of(self, key: str | None) -> UserName | None:
        """Return the user who has brought the node that a key is of, for themselves; empty where it is the pool's.

        None where it is no node's as of now: nothing is anybody's by a key of nobody.
        """
        owner = "" if key is not None and self.is_own(key) else None if key is None else self._registry.owner_of(key)
        return None if owner is None else UserName(owner)

    def is_unmissed(self, key: str) -> bool:
        """Tell whether nobody misses the agent that has this key: an engine starts and ends it, or a user does."""
        name = self.name_of(key)
        return bool(name) and name not in self._registry.expected

    def since_ms(self, key: str | None, now_ms: int) -> int | None:
        """Return since when who has this key is a node, in ms since 1970; None for the pool's own agent.

        A key of nobody's, and of a connection that is gone, is one since now. One that was registered later than this
        broker heard of it first, as its clock has it, which was wrong when it began, is one since then.
        """
        name = None if key is None else self.name_of(key)
        if key is None or name is None:
            return now_ms
        if name == _OWN:
            return None
        if key not in self._first_heard_ms:
            known = self._registry.public_keys
            self._first_heard_ms = {one: at for one, at in self._first_heard_ms.items() if one in known}
            self._first_heard_ms[key] = now_ms
        first_ms, added_ms = self._first_heard_ms[key], self._registry.added_ms(key)
        return first_ms if added_ms is None else min(first_ms, added_ms)

    @property
    def expected_nodes(self) -> tuple[str, ...]:
        """The nodes that an admin has registered, and that are to be there."""
        return self._registry.expected

    def find_problem(self, route: bytes, message: wire.Register) -> str:
        """Say why the agent of this connection may not be what it says that it is; empty if it may."""
        key = self.key_of(route)
        name = None if key is None else self.name_of(key)
        if name is None:
            return "Its key is none of this pool's. If its node was removed, give it a new file: bulletin node add NAME"
        if name == _OWN:
            if not secrets.compare_digest(message.secret.encode(), self._secret.encode()):
                return "The agent does not know this pool's secret."
            if message.agent in self._registry.names:
                return "There is a registered node of this name, and this agent does not have its file."
        elif (message.agent, message.node) != (name, name):
            return f"The agent has the file of the node {name!r}, and says that it is another."
        return ""
