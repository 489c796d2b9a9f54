"""By what an agent belongs to a pool: the pool's own folder, on its host; elsewhere the file of a registered node."""

from pathlib import Path

import msgspec

from bulletin.errors import BadConfig
from bulletin.wire import keys
from bulletin.wire.keys import Keys
from gpu_worker.config import PoolSettings, account_name


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent finds its broker, knows it, and is known to it."""

    #: What says so.
    file: Path
    broker_address: str
    broker_public_key: str
    own: Keys
    #: As the pool knows the node; empty for the agent of the pool's own folder.
    node: str = ""
    #: What the agent of the pool's own folder shows; a node has only its keys.
    secret: str = ""
    #: Its users are strangers to each other.
    serves_hub: bool


def read_membership(settings: PoolSettings) -> Membership:
    """Read the file that makes the agent of this folder one of a pool's.

    Raises
    ------
    BadConfig
        If there is none, or one that cannot be used; with what to do.
    """
    node_file, pool_file = settings.node_file, settings.pool_file
    try:
        keys.require_own_folder(settings.folder)
        if node_file.exists():
            if pool_file.exists():
                raise BadConfig(
                    f"{settings.folder} has node.json, which makes this host a node of a pool elsewhere, and "
                    "pool.json, which has the secrets of a pool's own broker. A node needs none of those: remove "
                    "pool.json here. If a broker runs in this folder, its agent needs no node.json: remove that."
                )
            return _of_node(node_file, keys.read_private(node_file, keys.NodeFile))
        return _of_pool(pool_file, keys.read_private(pool_file, keys.PoolFile))
    except FileNotFoundError:
        raise BadConfig(
            f"There is no pool in {settings.folder}. If its broker is to run on this host, start that first: bulletin "
            "broker. If it runs on another one, type there: bulletin node add NAME; and bring the file that it makes "
            f"here, as {node_file}"
        ) from None
    except PermissionError as error:
        raise BadConfig(
            f"{error.filename} is not for {account_name()!r} to read, as which this agent runs. Give it to that user; "
            "or where it is the pool's own, run this agent as the broker's user."
        ) from None


def _of_node(path: Path, file: keys.NodeFile) -> Membership:
    return Membership(
        file=path,
        broker_address=file.broker_address,
        broker_public_key=file.broker_public_key,
        own=file.keys,
        node=file.node,
        serves_hub=file.serves_hub,
    )


def _of_pool(path: Path, file: keys.PoolFile) -> Membership:
    return Membership(
        file=path,
        broker_address=file.agent_address,
        broker_public_key=file.keys.public,
        own=keys.agent_keys(file.agent_secret),
        secret=file.agent_secret,
        serves_hub=file.serves_hub,
    )
