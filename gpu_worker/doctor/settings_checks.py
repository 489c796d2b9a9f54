"""The configuration file and what it sets: whether it is read at all, known words only, and one isolation chosen."""

import os
from collections.abc import Iterator
from pathlib import Path

from traitlets.config import Config
from traitlets.config.loader import JSONFileConfigLoader, PyFileConfigLoader

from bulletin.errors import BadConfig
from gpu_worker.agent.environment_owners import describe_path
from gpu_worker.config import account_name
from gpu_worker.console.base_command import Command, is_config_file
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.file_owners import is_closed, is_there
from gpu_worker.doctor.pool_setup import PoolSetup
from gpu_worker.unknown_settings import find_unknown

#: Where the pages and units have it.
USUAL_FILE = Path("/etc/bulletin/bulletin_config.py")


def read_config_file(path: Path) -> tuple[Config, list[Diagnosis]]:
    """Run a configuration file of the pool; return what it sets, and what is wrong with it as a file."""
    if is_closed(path):
        return Config(), [
            Diagnosis(
                check="config-closed",
                what=f"{account_name()!r} may not see {path}.",
                why="What the pool is told there is not looked at.",
                remedy="Run this as root, or as the user who runs the pool.",
            )
        ]
    if path.exists() and not is_config_file(path):
        return Config(), [
            Diagnosis(
                check="config-name",
                what=f"{path} is no configuration file: that is a file whose name ends in .py or .json.",
                why="The pool is told to read it, and does not start.",
                remedy="Give it such a name, or correct the one that the pool is told.",
            )
        ]
    if not path.is_file():
        return Config(), [
            Diagnosis(
                check="config-missing",
                what=f"There is no configuration file {path}.",
                why="The pool is told to read it, and does not start without.",
                remedy="Write it (`bulletin init` does), or correct the name.",
            )
        ]
    if who := describe_path(path):
        return Config(), [
            Diagnosis(
                check="config-foreign",
                what=f"{path} is not looked into: {who}.",
                why="It is a program, which the pool runs at its start with all that it may do.",
                remedy=f"Give it to root or to the pool's user, and run: chmod go-w {path}",
            )
        ]
    try:
        loader = JSONFileConfigLoader if path.suffix == ".json" else PyFileConfigLoader
        return loader(path.name, path=str(path.parent)).load_config(), []
    except Exception as error:  # noqa: BLE001  whatever somebody's file raises
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return Config(), [
            Diagnosis(
                check="config-broken",
                what=f"{path}{line} cannot be read: {type(error).__name__}: {error}.",
                why="No program of the pool starts with it: it would have none of what the file sets.",
                remedy="Correct the file.",
            )
        ]


def check_words(config: Config, path: Path) -> Iterator[Diagnosis]:
    """Look for settings that are none: a word that is none, or of a section that is none."""
    for unknown in find_unknown(config, [Command, *Command.classes]):
        yield Diagnosis(
            check="config-word" if unknown.name else "config-section",
            what=f"{path} sets {unknown.describe()}, which is no setting.",
            why="No program of the pool starts with it: what it was to do would not be done.",
            remedy=f"Write {unknown.meant()}." if unknown.near else "The settings stand in docs/reference/settings.md.",
        )


def check_unread(setup: PoolSetup, usual: Path = USUAL_FILE) -> Iterator[Diagnosis]:
    """Look for a configuration file that lies where one is expected, and that nobody was told to read."""
    beside = [usual]
    if setup.hub_file is not None:
        beside.append(setup.hub_file.with_name("bulletin_config.py"))
    if setup.hub is None or not setup.hub.starts_pool or setup.config_file is not None:
        return
    for path in dict.fromkeys(one for one in beside if is_there(one)):
        yield Diagnosis(
            check="config-unread",
            what=f"{path} is there, and the pool that {setup.hub_file} starts does not read it.",
            why="What it sets has no effect.",
            remedy=f'Say so to configure: pool_args=["--config", "{path}"]; or remove the file.',
        )


def check_isolation(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Look whether somebody has chosen whose Unix user cells run as, and whether that can be."""
    settings = setup.settings
    if not setup.is_config_read and not settings.isolation:
        return  # it may be chosen there
    if setup.hub is not None and not setup.hub.starts_pool and not settings.isolation:
        return  # a broker alone needs none, and whether this host has an agent, too, its own files say
    if setup.is_broker_alone and not settings.isolation:
        return
    try:
        # A broker alone needs none; an agent does, and is root for it.
        settings.require_isolation(serves_hub=setup.serves_hub, has_root_helper=os.getuid() == 0)
    except BadConfig as error:
        yield Diagnosis(
            check="isolation",
            what=str(error),
            why="The pool does not start until it is chosen.",
            remedy='Set c.Pool.isolation, or isolation= of configure(): "unix-user" where users are Unix users.',
        )
