"""`bulletin keys`: by which keys the broker of this folder is known. It works without a broker, too."""

import sys

from traitlets import Float

from bulletin.errors import BadConfig
from bulletin.wire import keys
from gpu_worker import pool_keys
from gpu_worker.console.base_command import Command
from gpu_worker.console.node_command import check_own_folder, moment
from gpu_worker.node_registry import time_of_day_ms

_USAGE = "usage: bulletin keys rotate [--accept-old=SECONDS]\n"


class KeysCommand(Command):
    """`bulletin keys rotate`."""

    name = "bulletin-keys"
    description = (
        "Change the keys by which the broker of this folder is known. keys rotate makes new ones, which it has from "
        "its next start; with the old ones it is reached where it was, until a time. As the broker's user, on its host."
    )
    accept_old = Float(
        604_800.0,
        min=0,
        help="keys rotate: seconds from now for which who knows the broker by its old keys reaches it where it was. 0: "
        "they are worth nothing from its next start. Example: 86400",
    ).tag(config=True)
    aliases = {
        "folder": "Pool.folder",
        "config": "Command.config_file",
        "accept-old": "KeysCommand.accept_old",
    }

    def start(self) -> None:
        """Do what is asked for."""
        if self.extra_args != ["rotate"]:
            sys.stderr.write(_USAGE)
            self.status = 2
            return
        settings = self.settings()
        check_own_folder(settings)
        until_ms = time_of_day_ms() + round(self.accept_old * 1000)
        files = pool_keys.plan(settings.pool_file, lambda files: self._next_keys(files, until_ms))
        sys.stdout.write(_sentence(files, until_ms, accepts_old=bool(self.accept_old)))

    def _next_keys(self, files: keys.PoolFile, until_ms: int) -> keys.NextKeys:
        """Make keys for the broker that has these. Raises BadConfig while it is known by older ones."""
        if files.earlier is not None and files.earlier.until_ms > time_of_day_ms() and self.accept_old:
            raise BadConfig(
                f"The broker's keys before these are accepted until {moment(files.earlier.until_ms)}: change them "
                "again after that; or at once, and let nobody come with any old ones: bulletin keys rotate "
                "--accept-old=0"
            )
        return keys.NextKeys(keys=keys.make_keys(), accepts_old_until_ms=until_ms)


def _sentence(files: keys.PoolFile, until_ms: int, *, accepts_old: bool) -> str:
    if not accepts_old:
        return (
            "The broker has new keys from its next start: start it again. Who knows it by the old ones is then cut "
            "off: each node needs a new file (bulletin node rotate NAME), each notebook server is to be started again. "
            "Cells that run go on.\n"
        )
    return (
        "The broker has new keys from its next start, at other ports: if Pool.kernel_port and Pool.agent_port are set, "
        f"change them, and start it again. Until {moment(until_ms)} it can be reached by its old keys, too, at "
        f"{files.kernel_address} and {files.agent_address}. Until then each node needs a new file (bulletin node "
        "rotate NAME), and notebook servers are to be started again. Cells that run go on.\n"
    )
