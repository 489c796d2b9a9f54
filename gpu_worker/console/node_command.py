"""`bulletin node`: which nodes of other hosts may come to the pool of this folder. It works without a broker, too."""

import os
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec
from traitlets import Bool, Float, Unicode

from bulletin.errors import BadConfig
from bulletin.pool_words import describe_node
from bulletin.wire import keys
from gpu_worker.config import PoolSettings, account_name
from gpu_worker.console.base_command import Command
from gpu_worker.node_registry import NodeRegistry, check_name, check_owner, time_of_day_ms
from gpu_worker.reachability import is_loopback, is_unspecified, parse

_USAGE = """\
usage: bulletin node add NAME [--user=USER] [--address=tcp://HOST:PORT] [--out=FILE] [--replace]
       bulletin node rotate NAME [--accept-old=SECONDS] [--address=tcp://HOST:PORT] [--out=FILE]
       bulletin node list [--json]
       bulletin node remove NAME
"""


class NodeCommand(Command):
    """`bulletin node add`, `rotate`, `list` and `remove`."""

    name = "bulletin-node"
    description = (
        "Say which nodes of other hosts may come to the pool of this folder. node add NAME makes the one file that "
        "the agent of a node needs: where the broker is, and keys of that node alone. node rotate NAME makes one "
        "with new keys, and its cells go on. node list. node remove NAME "
        "makes its file worthless, and ends its agent's link at once. As the broker's user, on its host."
    )
    address = Unicode(
        "",
        help="node add, node rotate: where nodes reach the broker, if not where it listens. "
        "Example: tcp://hub.example.org:9002",
    ).tag(config=True)
    out = Unicode(
        "", help="node add, node rotate: the file to make. -: standard output, for a pipe. Empty: NAME.node.json, here."
    ).tag(config=True)
    user = Unicode(
        "",
        help="node add: for this user of the pool alone, who has brought it: a job or a machine of their own. It costs "
        "them nothing, and nobody else's cells come there. Empty: for all. Example: ada",
    ).tag(config=True)
    replace = Bool(False, help="node add: give a node of this name new keys; its old file is revoked.").tag(config=True)
    accept_old = Float(
        86_400.0,
        min=0,
        help="node rotate: seconds for which the node's old keys are accepted, too; its agent takes up its new file "
        "within seconds when that is there. Example: 604800",
    ).tag(config=True)
    as_json = Bool(False, help="node list: write JSON.").tag(config=True)
    aliases = {
        "folder": "Pool.folder",
        "config": "Command.config_file",
        "address": "NodeCommand.address",
        "out": "NodeCommand.out",
        "user": "NodeCommand.user",
        "accept-old": "NodeCommand.accept_old",
    }
    flags = {
        "replace": ({"NodeCommand": {"replace": True}}, "Give a node of this name new keys."),
        "json": ({"NodeCommand": {"as_json": True}}, "Write JSON."),
    }

    def parse_command_line(self, argv: list[str] | None = None) -> None:
        """Take the verb off: options may then stand before the name and after it."""
        words = list(sys.argv[1:] if argv is None else argv)
        self._verb = words.pop(0) if words and not words[0].startswith("-") else ""
        super().parse_command_line(words)

    def start(self) -> None:
        """Do what is asked for."""
        match self._verb, self.extra_args:
            case "add", [name]:
                self._add(name)
            case "rotate", [name]:
                self._rotate(name)
            case "list", []:
                self._list()
            case "remove", [name]:
                self._remove(name)
            case _:
                sys.stderr.write(_USAGE)
                self.status = 2

    def _add(self, name: str) -> None:
        registry = NodeRegistry(self.settings().folder)
        check_owner(self.user)

        def add(public_key: str) -> None:
            registry.add(name, public_key, time_of_day_ms(), replaces=self.replace, owner=self.user)

        path = self._make_file(name, add, is_own=bool(self.user))
        if path is not None and self.user:
            sys.stdout.write(
                f"{name} may come to this pool for {self.user!r} alone, with {path}, which has a secret key of that "
                "node: give it to that user by a way that nobody reads along, as node.json in a folder of theirs; then "
                "remove it here. They start it in a job or on a machine of their own: bulletin agent --folder FOLDER\n"
            )
        elif path is not None:
            sys.stdout.write(
                f"{name} may come to this pool, with {path}, which has a secret key of that node: bring it there by a "
                "way that nobody reads along, as node.json in the folder of its agent, of that one's user and of mode "
                "0600; then remove it here.\n"
            )

    def _rotate(self, name: str) -> None:
        registry, until_ms = NodeRegistry(self.settings().folder), 0

        def rotate(public_key: str) -> None:
            nonlocal until_ms
            until_ms = registry.rotate(name, public_key, round(self.accept_old * 1000))

        is_own = any(one.node == name and one.owner for one in registry.read())
        path = self._make_file(name, rotate, is_own=is_own)
        if path is not None:
            sys.stdout.write(
                f"{name} has new keys, in {path}: bring it there by a way that nobody reads along, in the place of the "
                "node.json in the folder of its agent, of that one's user and of mode 0600; then remove it here. The "
                "agent takes it up within seconds, and its cells go on. The old keys are accepted until "
                f"{moment(until_ms)}.\n"
            )

    def _make_file(self, name: str, register: Callable[[str], None], *, is_own: bool) -> Path | None:
        """Make the file of a node with keys of its own, and register its public key; None is standard output.

        On one that a user has brought (`is_own`) are no strangers: cells run as whoever starts its agent.
        """
        check_name(name)
        files = read_pool(self.settings())
        file = keys.NodeFile(
            node=name,
            broker_address=self._find_address(files),
            broker_public_key=files.keys.public,
            keys=keys.make_keys(),
            serves_hub=not is_own,
        )
        if self.out == "-":
            if sys.stdout.isatty():
                raise BadConfig("The file has a secret key, which is not to be seen on a terminal: pipe it on.")
            register(file.keys.public)
            sys.stdout.write(msgspec.json.encode(file).decode() + "\n")
            return None
        path = Path(self.out or f"{name}.node.json").expanduser().absolute()
        if path.exists():
            raise BadConfig(f"{path} is there already. Remove it, or name another file with --out.")
        try:
            keys.write_private(path, file)
        except OSError as error:
            raise BadConfig(f"{path} cannot be written: {error.strerror}. Name another file with --out.") from None
        try:
            register(file.keys.public)
        except BaseException:
            path.unlink()
            raise
        return path

    def _find_address(self, files: keys.PoolFile) -> str:
        """Find where nodes reach the broker. Raises BadConfig where only this host does."""
        if self.address:
            if parse(self.address) is None:
                raise BadConfig(f"--address is {self.address!r}. Write it as tcp://HOST:PORT")
            return self.address
        found = parse(files.agent_address)
        if found is None:
            raise BadConfig("The broker of this pool has not run yet: nobody knows its port. Start it: bulletin broker")
        host, port = found
        if is_loopback(host):
            raise BadConfig(
                f"The broker listens at {files.agent_address}, where only this host reaches it. Let it listen "
                "where nodes do (Pool.host, and ports in Pool.kernel_port and Pool.agent_port), and start it again."
            )
        if is_unspecified(host):
            raise BadConfig(
                f"The broker listens everywhere ({files.agent_address}). Say where nodes reach it: "
                f"--address=tcp://HOST:{port}"
            )
        return files.agent_address

    def _list(self) -> None:
        nodes = NodeRegistry(check_own_folder(self.settings())).read()
        if self.as_json:
            sys.stdout.write(msgspec.json.format(msgspec.json.encode(nodes), indent=2).decode() + "\n")
            return
        for one in nodes:
            name = describe_node(one.node, one.owner)
            sys.stdout.write(f"{name}  added {moment(one.added_at_ms)}  key {one.public_key[:8]}…\n")
            for old in one.earlier_keys:
                verb = "was" if old.until_ms <= time_of_day_ms() else "is"
                sys.stdout.write(f"  its old key {old.public_key[:8]}… {verb} accepted until {moment(old.until_ms)}\n")
        if not nodes:
            sys.stdout.write("No node of another host is registered: bulletin node add NAME\n")

    def _remove(self, name: str) -> None:
        settings = self.settings()
        NodeRegistry(check_own_folder(settings)).remove(name)
        sys.stdout.write(
            f"{name} is no node of this pool any more: its file is worth nothing. If its agent runs, the broker ends "
            "its link now, and the cells there are lost.\n"
        )


def check_own_folder(settings: PoolSettings) -> Path:
    """Check that the pool is one's own. Raises BadConfig."""
    try:
        owner = settings.pool_file.stat().st_uid
    except FileNotFoundError:
        raise BadConfig(f"There is no pool in {settings.folder}. Start its broker first: bulletin broker") from None
    except PermissionError:
        owner = -1
    if owner != os.getuid():
        whose = "another user's" if owner == -1 else f"{account_name(owner)!r}'s"
        raise BadConfig(
            f"The pool in {settings.folder} is {whose}, and this is {account_name()!r}. Run this as the broker's user: "
            "sudo -u USER bulletin node ..."
        )
    keys.require_own_folder(settings.folder)
    return settings.folder


def read_pool(settings: PoolSettings) -> keys.PoolFile:
    """Read the keys of the pool, which is to be one's own. Raises BadConfig."""
    check_own_folder(settings)
    return keys.read_private(settings.pool_file, keys.PoolFile)


def moment(at_ms: int) -> str:
    """Return when that is, in milliseconds since 1970, as the clock here says it."""
    return f"{datetime.fromtimestamp(at_ms / 1000).astimezone():%Y-%m-%d %H:%M %Z}"
