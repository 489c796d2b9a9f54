"""`bulletin doctor`: reads the files of a set-up, looks at all that they name, and says what is wrong."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from traitlets import Bool, List, Unicode
from traitlets.config import Config

from bulletin.errors import BadConfig
from bulletin.hub_facts import HubFacts
from gpu_worker.agent.environment_owners import describe_path, find_changer
from gpu_worker.config import Pool, PoolSettings, account_name
from gpu_worker.console.base_command import Command, end_quietly_on_broken_pipe
from gpu_worker.doctor import (
    environment_checks,
    folder_checks,
    hub_checks,
    ledger_checks,
    link_checks,
    node_checks,
    port_checks,
    quota_checks,
    settings_checks,
    user_checks,
)
from gpu_worker.doctor.diagnosis import Diagnosis, Examination, describe_examination
from gpu_worker.doctor.file_owners import is_closed
from gpu_worker.doctor.hub_api import HubApi
from gpu_worker.doctor.pool_setup import PoolSetup
from gpu_worker.unknown_settings import require_typed

_READ_S = 60.0
_HUB_VARIABLES = ("JUPYTERHUB_API_URL", "JUPYTERHUB_API_TOKEN")


class DoctorCommand(Command):
    """`bulletin doctor`: what is wrong with a set-up, before it is started and while it runs."""

    name = "bulletin-doctor"
    description = (
        "Look at everything that can be set up wrong, and say in a line each what it is, why it matters and what to "
        "do: the files, folders and ports of hub and pool, people's environments, the node's GPUs. It changes nothing. "
        "On the hub's host: doctor --hub=jupyterhub_config.py. On a node: doctor --folder=... --config=... . Exit "
        "status 1: something is wrong; 0: at most advice."
    )
    hub_file = Unicode("", help="The hub's configuration file, which names the pool's folder and its options.").tag(
        config=True
    )
    hub_python = Unicode("", help="The interpreter of the hub's environment. Empty: this one.").tag(config=True)
    hub_env = Unicode(
        "/etc/bulletin/hub.env",
        help="Where a pool that its hub does not start has the hub's address and its token: lines NAME=VALUE.",
    ).tag(config=True)
    notebook_pythons = List(
        Unicode(),
        help="Interpreters of notebooks' environments to look into. Empty: that of the servers that the hub starts.",
    ).tag(config=True)
    as_json = Bool(False, help="Write JSON.").tag(config=True)
    aliases = {
        "folder": "Pool.folder",
        "config": "DoctorCommand.pool_config",
        "hub": "DoctorCommand.hub_file",
        "hub-python": "DoctorCommand.hub_python",
        "hub-env": "DoctorCommand.hub_env",
        "notebook-python": "DoctorCommand.notebook_pythons",
    }
    flags = {"json": ({"DoctorCommand": {"as_json": True}}, "Write JSON.")}
    pool_config = Unicode("", help="The pool's configuration file.").tag(config=True)

    def start(self) -> None:
        """Look, and print what was found; `status` is 1 where something is wrong."""
        if self.extra_args:
            raise BadConfig(f"{self.extra_args[0]!r} is no option of doctor. See: bulletin doctor --help")
        examination = self._examine()
        self.status = 0 if examination.is_sound else 1
        with end_quietly_on_broken_pipe():
            if self.as_json:
                sys.stdout.write(msgspec.json.format(msgspec.json.encode(examination), indent=2).decode() + "\n")
            else:
                sys.stdout.write("".join(f"{line}\n" for line in describe_examination(examination)))
            sys.stdout.flush()

    def _examine(self) -> Examination:
        found: list[Diagnosis] = []
        hub_file = Path(self.hub_file).absolute() if self.hub_file else None
        facts = self._read_hub(hub_file, found)
        words = _pool_words(facts)
        config_file = self.pool_config or _option(words, "--config")
        path = Path(config_file).absolute() if config_file else None
        config = Config()
        wrong: list[Diagnosis] = []
        if path is not None:
            config, wrong = settings_checks.read_config_file(path)
            found += [*wrong, *settings_checks.check_words(config, path)]
        config = Config({"Pool": config.Pool})
        config.merge(_typed(words, found))
        config.merge(Config({"Pool": self.cli_config.get("Pool", {})}))
        if facts is not None and facts.folder and "folder" not in self.cli_config.get("Pool", {}):
            config.Pool.folder = facts.folder
        settings = _freeze(config, found)
        looked_at = [f"the hub's file {hub_file}"] if hub_file else []
        not_looked_at = [] if hub_file else ["a hub (--hub=jupyterhub_config.py)"]
        if settings is not None:
            setup = PoolSetup(
                settings=settings,
                config_file=path,
                is_config_read=not wrong,
                hub=facts,
                hub_file=hub_file,
                hub_environ=_find_hub(facts, Path(self.hub_env)),
            )
            what = "node" if setup.is_node else "pool"
            if facts is not None and not facts.is_configured and "folder" not in self.cli_config.get("Pool", {}):
                found += hub_checks.check_hub_file(setup)
                not_looked_at.append("the pool, of which the hub's file does not say where it is (--folder=PATH)")
            else:
                looked_at.append(f"the {what} in {settings.folder}" + (f" with {path}" if path else ""))
                found += self._check(setup, not_looked_at)
        return Examination(
            diagnoses=tuple(dict.fromkeys(found)), looked_at=tuple(looked_at), not_looked_at=tuple(not_looked_at)
        )

    def _check(self, setup: PoolSetup, not_looked_at: list[str]) -> Iterator[Diagnosis]:
        hub = HubApi(
            setup.hub_environ.get("JUPYTERHUB_API_URL", "") or (setup.hub.api_url if setup.hub is not None else ""),
            setup.hub_environ.get("JUPYTERHUB_API_TOKEN", ""),
        )
        known = hub.ask_users()
        groups, users = _find_groups(setup, known), _find_users(setup, known)
        checks: list[tuple[str, Callable[[], Iterable[Diagnosis]]]] = [
            ("the isolation", lambda: settings_checks.check_isolation(setup)),
            ("configuration files", lambda: settings_checks.check_unread(setup)),
            ("the hub's file", lambda: hub_checks.check_hub_file(setup)),
            ("the hub", lambda: hub_checks.check_hub_answers(setup, hub)),
            ("the pool's folder", lambda: folder_checks.check_folder(setup)),
            ("the pool's private files", lambda: folder_checks.check_private_files(setup)),
            ("the clock", lambda: folder_checks.check_clock(setup)),
            ("disks", lambda: folder_checks.check_room(setup)),
            ("the ledger", lambda: () if setup.is_node else ledger_checks.check_ledger(setup)),
            ("the quota file", lambda: () if setup.is_node else quota_checks.check_quotas(setup, groups)),
            ("the pool's ports", lambda: port_checks.check_pool_ports(setup)),
            ("the hub's ports", lambda: port_checks.check_hub_ports(setup, hub)),
            ("the broker's address", lambda: port_checks.check_reach(setup)),
            ("GPUs", lambda: node_checks.check_gpus(setup)),
            ("what keeps cells apart", lambda: node_checks.check_protections(setup)),
            ("users", lambda: user_checks.check_users(setup, users)),
            ("environments of cells", lambda: environment_checks.check_cell_environments(setup)),
            (
                "environments of notebooks",
                lambda: environment_checks.check_environments(setup, self.notebook_pythons),
            ),
            ("the pool that runs", lambda: link_checks.check_pool(setup, hub)),
        ]
        for what, check in checks:
            try:
                yield from check()
            except OSError as error:  # of a file that is not for this user, say: the other checks go on
                not_looked_at.append(f"{what}, all of it ({error})")
        if not self.notebook_pythons and not environment_checks.find_server_python(setup):
            not_looked_at.append("notebooks' environments (--notebook-python=PATH, once for each)")

    def _read_hub(self, file: Path | None, found: list[Diagnosis]) -> HubFacts | None:
        """Have the hub's own environment read its file. What is in the way is among the facts, or found."""
        if file is None:
            return None
        if is_closed(file):
            return HubFacts(problem=f"{account_name()!r} may not see it; run this as root, or as the hub's user")
        if not file.is_file():
            return HubFacts(problem="there is no such file")
        if who := describe_path(file):
            found.append(
                Diagnosis(
                    check="hub-config-foreign",
                    what=f"{file} is not looked into: {who}.",
                    why="It is a program, which the hub runs at its start with all that it may do.",
                    remedy=f"Give it to root or to the hub's user, and run: chmod go-w {file}",
                )
            )
            return None
        python = self.hub_python or sys.executable
        if os.getuid() == 0 and self.hub_python and (who := find_changer(python, os.environ.get("PYTHONPATH", ""))):
            found.append(
                Diagnosis(
                    check="hub-python-foreign",
                    what=f"{file} is not looked into by {python}: {who}.",
                    why="This is root, which runs nothing that others can change.",
                    remedy="Run this as the hub's user, or give that environment to root.",
                    level="advice",
                )
            )
            return None
        command = [python, "-P", "-m", "bulletin_spawner.config_reader", str(file)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_READ_S, check=False, cwd=file.parent)
            return msgspec.json.decode(done.stdout, type=HubFacts)
        except (OSError, subprocess.TimeoutExpired, msgspec.MsgspecError) as error:
            said = getattr(error, "strerror", None) or "Bulletin or JupyterHub is not there, or the file does not end"
            return HubFacts(problem=f"{python} cannot read it: {said}")


def _pool_words(facts: HubFacts | None) -> list[str]:
    return list(facts.pool_words) if facts is not None else []


def _option(words: list[str], name: str) -> str:
    """Find the value of an option in the words of a command."""
    for number, word in enumerate(words):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and number + 1 < len(words):
            return words[number + 1]
    return ""


def _typed(words: list[str], found: list[Diagnosis]) -> Config:
    """Read the options that a hub gives to its pool, as the pool does."""
    command = Command()
    try:
        command.parse_command_line(words)
        require_typed(command.cli_config, [Command, *Command.classes], [*command.aliases, *command.flags])
    except Exception as error:  # noqa: BLE001  whatever traitlets thinks of them, and BadConfig
        found.append(
            Diagnosis(
                check="pool-args",
                what=f"pool_args of configure() cannot be read: {error}.",
                why="The pool does not start with them.",
                remedy="`bulletin pool --help-all` shows the options.",
            )
        )
        return Config()
    return Config({"Pool": command.cli_config.get("Pool", {})})


def _freeze(config: Config, found: list[Diagnosis]) -> PoolSettings | None:
    try:
        return Pool(config=config).settings()
    except Exception as error:  # noqa: BLE001  traitlets' own are of many kinds
        found.append(
            Diagnosis(
                check="setting",
                what=" ".join(str(error).split()),
                why="The pool does not start with that.",
                remedy="Correct it: the settings stand in docs/reference/settings.md.",
            )
        )
        return None


def _find_hub(facts: HubFacts | None, file: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Find how the pool's own programs know their hub: by this environment, the units' file, or what the hub starts."""
    found = {name: environ[name] for name in _HUB_VARIABLES if environ.get(name)}
    if not found and (facts is None or not facts.starts_pool):
        found = _read_env(file)
    if not found and facts is not None and facts.is_configured and facts.service_token:
        found = {"JUPYTERHUB_API_URL": "", "JUPYTERHUB_API_TOKEN": facts.service_token}
    return found


def _read_env(file: Path) -> dict[str, str]:
    try:
        rows = [line.partition("=") for line in file.read_text().splitlines()]
    except OSError:
        return {}
    return {name.strip(): value.strip().strip("\"'") for name, _, value in rows if name.strip() in _HUB_VARIABLES}


def _find_groups(setup: PoolSetup, known: Mapping[str, tuple[str, ...]] | None) -> set[str] | None:
    """Collect the hub's groups; None where nobody can say which there are."""
    told = {group for groups in known.values() for group in groups} if known is not None else set()
    facts = setup.hub
    if facts is not None and facts.manages_groups:
        return told or None
    return told | set(facts.groups if facts is not None else ()) or None


def _find_users(setup: PoolSetup, known: Mapping[str, tuple[str, ...]] | None) -> set[str]:
    return {*(known or ()), *(setup.hub.users if setup.hub is not None else ())}
