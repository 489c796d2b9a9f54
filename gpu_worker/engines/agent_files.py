"""What an engine keeps on disk: the files that its agents are started with, and which agents it has started."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bulletin.errors import BadConfig
from bulletin.wire import keys
from gpu_worker.engines.agent_jobs import AgentTicket
from gpu_worker.engines.fleet import FleetAgent
from gpu_worker.node_registry import NodeRegistry


class FleetFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agents that an engine had when this was written, for one that is started after it was killed."""

    agents: tuple[FleetAgent, ...] = ()


class AgentFiles:
    """Registers nodes, writes their files, and takes both back."""

    def __init__(self, pool_folder: Path, folder: Path, agent_settings: Mapping[str, Any]) -> None:
        """Take where files of agents are to lie, which all hosts of agents see, and what agents are set to."""
        self._folder, self._agent_settings = folder, agent_settings
        self._registry = NodeRegistry(pool_folder)
        self._fleet = pool_folder / "engine.json"

    def prepare(self) -> None:
        """Make the folder. Raises BadConfig where that cannot be."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadConfig(f"Scaling.folder: {self._folder} cannot be made: {error.strerror}.") from None
        facts = self._folder.stat()
        if facts.st_uid != os.getuid() or facts.st_mode & 0o022:
            raise BadConfig(
                f"Scaling.folder: others than this user may write into {self._folder}. Give it to this user and type: "
                f"chmod go-w {self._folder}"
            )

    def add(self, node: str, pool: keys.PoolFile, now_ms: int) -> AgentTicket:
        """Register a node with keys of its own, and write what its agent is started with."""
        ticket = self._ticket(node)
        file = keys.NodeFile(
            node=node,
            broker_address=pool.agent_address,
            broker_public_key=pool.keys.public,
            keys=keys.make_keys(),
            serves_hub=pool.serves_hub,
        )
        self._write(ticket.config_file, msgspec.json.encode({"Pool": self._agent_settings}))
        keys.write_private(ticket.node_file, file)
        self._registry.add(node, file.keys.public, now_ms, replaces=True, is_of_engine=True)
        return ticket

    def remove(self, node: str) -> None:
        """Take a node's registration back, and its files: nobody comes with them any more."""
        with contextlib.suppress(BadConfig):  # it is gone already
            self._registry.remove(node)
        ticket = self._ticket(node)
        for path in (ticket.node_file, ticket.config_file):
            path.unlink(missing_ok=True)

    def remove_log(self, node: str) -> None:
        """Take away what a job that came to something has printed."""
        self._folder.joinpath(f"{node}.log").unlink(missing_ok=True)

    def read_agents(self) -> tuple[FleetAgent, ...]:
        """Return the agents that were there when this was written last. Raises BadConfig."""
        try:
            return msgspec.json.decode(self._fleet.read_bytes(), type=FleetFile).agents
        except FileNotFoundError:
            return ()
        except msgspec.DecodeError as error:
            raise BadConfig(
                f"{self._fleet} is not what an engine writes ({error}). End the agents that it names, if it does, "
                "and remove it."
            ) from None

    def keep_agents(self, agents: tuple[FleetAgent, ...]) -> None:
        """Write down which agents there are."""
        self._write(self._fleet, msgspec.json.encode(FleetFile(agents=agents)))

    def _ticket(self, node: str) -> AgentTicket:
        return AgentTicket(node, self._folder / f"{node}.node.json", self._folder / f"{node}.config.json")

    def _write(self, path: Path, content: bytes) -> None:
        beside = path.with_name(f".{path.name}.new")
        beside.unlink(missing_ok=True)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        beside.replace(path)
