"""Who may talk to a pool: its CURVE keys, its secrets, and the files in which they rest, of mode 0600 but for one.

`pool.json` belongs to the pool: the broker's secret key, the secret of the agent beside it, the ports. A node of
another host has a `node.json` instead: where the broker is and how it is known, and keys of that node alone.
`connection.json` is for kernels of the same user where there is no hub: address, public key, token. `agent.json` is an
agent's own. None of them ever travels in argv or in a log. `public.json` (mode 0644) has what is no secret, address and
public key: a hub that is another Unix user reads it and tells its servers.
"""

import hashlib
import os
import secrets
import stat
from pathlib import Path
from typing import TypeVar

import msgspec
import zmq
from zmq.utils import z85

from bulletin.errors import BadConfig


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """A CURVE key pair, in Z85."""

    public: str
    secret: str


class EarlierBroker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By which keys a broker was known before and where, and until when it still is, in milliseconds since 1970."""

    keys: Keys
    kernel_address: str
    agent_address: str
    until_ms: int


class NextKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that a broker has when it is started next; its present ones are accepted until then, as well."""

    keys: Keys
    accepts_old_until_ms: int


class PoolFile(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of one pool share."""

    keys: Keys
    agent_secret: str
    token: str
    kernel_address: str
    agent_address: str
    #: Its users are a hub's, and strangers to each other.
    serves_hub: bool = False
    earlier: EarlierBroker | None = None
    next: NextKeys | None = None


class NodeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the agent of a registered node needs of its pool, and nothing by which it could be another part of it."""

    #: As the pool knows the node.
    node: str
    broker_address: str
    broker_public_key: str
    #: The node's own, by which the broker knows it.
    keys: Keys
    #: Who uses the pool may be strangers to each other; False of the nodes of somebody's own pool.
    serves_hub: bool = True


class EarlierKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key that a node had before, and by which it is known until a time, in milliseconds since 1970."""

    public_key: str
    until_ms: int


class RegisteredNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A node of another host whose agent may come."""

    #: An engine has registered it, and starts and ends its agent: it is not missed where it is not there.
    is_of_engine: bool = False
    #: Who has brought it: it is for this user of the pool alone, and not missed. Empty: it is the pool's.
    owner: str = ""

    node: str
    public_key: str
    #: In milliseconds since 1970.
    added_at_ms: int
    #: Those that are still accepted, until its agent has its new file.
    earlier_keys: tuple[EarlierKey, ...] = ()


class NodesFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All nodes that are registered at a pool."""

    nodes: tuple[RegisteredNode, ...] = ()


class AgentFile(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent keeps, so that kernels find it again after a restart and hear what became of their cells."""

    keys: Keys
    address: str


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel needs to reach a broker. The token is empty where the hub's own is used."""

    address: str
    public_key: str
    token: str = ""


class PublicFile(msgspec.Struct, frozen=True, kw_only=True):
    """What everybody may know of a pool: where its broker is, and the key by which it is known to be that."""

    address: str
    public_key: str


File = TypeVar("File", PoolFile, NodeFile, NodesFile, AgentFile, Connection)
Decoded = TypeVar("Decoded", bound=msgspec.Struct)


def make_keys() -> Keys:
    """Make a fresh CURVE key pair."""
    public, secret = zmq.curve_keypair()
    return Keys(public=public.decode(), secret=secret.decode())


def agent_keys(agent_secret: str) -> Keys:
    """Derive the keys by which agents of a pool are known at its broker: from the secret that they share with it."""
    digest = hashlib.sha256(b"bulletin agent keys\0" + agent_secret.encode()).digest()
    secret = z85.encode(digest)
    return Keys(public=zmq.curve_public(secret).decode(), secret=secret.decode())


def make_secret() -> str:
    """Make a token that nobody guesses: 256 random bits."""
    return secrets.token_urlsafe(32)


def make_id() -> str:
    """Make a name that nothing else has: 64 random bits."""
    return secrets.token_hex(8)


def make_folder(folder: Path) -> None:
    """Make the pool's folder, if it is not there; kernels of other users reach it. Raises as `require_own_folder`."""
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    require_own_folder(folder)


def require_own_folder(folder: Path) -> None:
    """Check that others cannot change the folder where keys and ledger rest: what is opened there could be a link.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    BadConfig
        If they can.
    """
    facts = folder.stat()
    if facts.st_uid not in (os.getuid(), 0) or stat.S_IMODE(facts.st_mode) & 0o022:
        raise BadConfig(
            f"{folder} can be changed by other users, and the pool's keys and ledger are to rest there. "
            "Give it to the user who runs the pool, and run: chmod go-w on it; or choose another --folder."
        )


def write_private(path: Path, content: PoolFile | NodeFile | NodesFile | AgentFile | Connection) -> None:
    """Write a file that only its owner can read, in one step: a reader sees the old one or the new one."""
    _write(path, content, 0o600)


def write_public(path: Path, content: PublicFile) -> None:
    """Write a file that everybody can read and only its owner can change, in one step."""
    _write(path, content, 0o644)


def _write(path: Path, content: msgspec.Struct, mode: int) -> None:
    path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)  # whatever the umask takes away
            file.write(msgspec.json.format(msgspec.json.encode(content), indent=2))
    except OSError as error:  # it names no file
        beside.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None
    beside.replace(path)


def read_private(path: Path, kind: type[File]) -> File:
    """Read a file of `write_private`.

    Raises
    ------
    FileNotFoundError
        If there is none.
    BadConfig
        If it is another user's, readable by others, or not what it should be.
    """
    with path.open("rb") as file:
        facts = os.fstat(file.fileno())
        if facts.st_uid not in (os.getuid(), 0):
            raise BadConfig(f"{path} belongs to another user. Remove it, or name another connection file.")
        if stat.S_IMODE(facts.st_mode) & 0o077:
            raise BadConfig(f"{path} can be read by other users. Run: chmod 600 {path}")
        return _decode(path, file.read(), kind)


def read_public(path: Path) -> PublicFile:
    """Read a file of `write_public`; the pool may be another user's.

    Raises
    ------
    FileNotFoundError
        If there is none.
    BadConfig
        If anybody may have put it there, or it is not what it should be.
    """
    with path.open("rb") as file:
        facts = os.fstat(file.fileno())
        # Who may write where it lies may have made it, unless it belongs to root or to us.
        folders = () if facts.st_uid in (os.getuid(), 0) else (path.parent, path.parent.parent)
        for changed, mode in ((path, facts.st_mode), *((folder, folder.stat().st_mode) for folder in folders)):
            if stat.S_IMODE(mode) & 0o022:
                raise BadConfig(
                    f"{path} says where the pool is, and others can change {changed}. Keep the pool's folder where "
                    "only root and the pool's user write, as below /var/lib, and run: chmod go-w on it."
                )
        return _decode(path, file.read(), PublicFile)


def _decode(path: Path, content: bytes, kind: type[Decoded]) -> Decoded:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise BadConfig(f"{path} is not a file of Bulletin ({error}). Remove it and start the pool again.") from None
