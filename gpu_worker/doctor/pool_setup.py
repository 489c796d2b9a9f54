"""What `bulletin doctor` looks at: the pool's settings, the file they come from, and the hub before it."""

from functools import cached_property
from pathlib import Path

import msgspec

from bulletin.errors import BadConfig
from bulletin.hub_facts import HubFacts
from bulletin.wire import keys
from gpu_worker.config import PoolSettings
from gpu_worker.doctor.broker_probe import is_broker
from gpu_worker.doctor.file_owners import is_there, read_keys


class PoolSetup(msgspec.Struct, kw_only=True, dict=True):
    """One host's part of a pool, as its files say."""

    settings: PoolSettings
    config_file: Path | None = None
    #: Whether it could be read: else nobody knows what it sets.
    is_config_read: bool = True
    hub: HubFacts | None = None
    hub_file: Path | None = None
    #: The variables of the pool's own programs that say which hub it serves.
    hub_environ: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def is_node(self) -> bool:
        """Whether this host only runs an agent, of a broker elsewhere."""
        return is_there(self.settings.node_file)

    @property
    def is_broker_alone(self) -> bool:
        """Whether this host runs the broker of nodes elsewhere, and no agent has run in its folder."""
        folder = self.settings.folder
        return not self.is_node and is_there(folder / "nodes.json") and not is_there(folder / "agent.json")

    @property
    def serves_hub(self) -> bool:
        """Whether its users are a hub's, strangers to each other."""
        return self.is_node or bool(self.hub_environ) or (self.hub is not None and self.hub.is_configured)

    def read_pool_file(self) -> keys.PoolFile | None:
        """Read what the broker keeps; None where no broker has run here, or this user may not read it."""
        try:
            return read_keys(self.settings.pool_file, keys.PoolFile)
        except (OSError, BadConfig):  # another check says what is wrong with it
            return None

    @cached_property
    def is_broker_up(self) -> bool:
        """Whether this pool's broker listens where it listened last."""
        file = self.read_pool_file()
        return file is not None and bool(file.kernel_address) and is_broker(file.kernel_address, file.keys.public)
