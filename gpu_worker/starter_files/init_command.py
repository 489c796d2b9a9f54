"""`bulletin init`: asks what there is, and writes the files of a hub and its pool for it, which start as they are."""

import grp
import os
import pwd
import shutil
import sys
from pathlib import Path
from typing import cast

from traitlets import Bool, Int, Unicode

from bulletin.errors import BadConfig
from gpu_worker.console.base_command import Command
from gpu_worker.starter_files.answers import (
    KINDS,
    Kind,
    SiteAnswers,
    ask_for,
    check_names,
    check_pool_host,
    split_names,
)
from gpu_worker.starter_files.file_texts import StarterFile, compose

_USAGE = """\
usage: bulletin init workstation [--out=FOLDER]                     this computer, for people who trust each other
       bulletin init server [--groups=A,B] [--admins=ANN]           one GPU server; its people are Unix users
       bulletin init nodes --pool-host=ADDRESS [--groups=A,B] ...   a hub here, GPUs on other hosts
GPUs in jobs of Slurm: as nodes, and docs/howto/slurm.md says what goes into its bulletin_config.py.
On a terminal, `bulletin init` asks for what is not given; with --defaults it does not.
"""
_WHAT = """\
What is there?
  workstation  this computer, for you, or for people who trust each other with everything on it
  server       one GPU server, whose people are Unix users and are kept from each other
  nodes        a hub on this host, and GPUs on other hosts, or in jobs of Slurm (docs/howto/slurm.md)
"""


class InitCommand(Command):
    """`bulletin init`: the first files of a hub and its pool."""

    name = "bulletin-init"
    description = (
        "Write the files of a hub and its pool, with comments, for what there is: init workstation, init server, init "
        "nodes. They start as they are. It asks for what is not given, overwrites nothing, and says what to type next."
    )
    out = Unicode("", help="Where the files go. Empty: bulletin-hub, here.").tag(config=True)
    pool_folder = Unicode(
        "", help="Where the pool keeps keys and ledger. Empty: pool beside the files, or /var/lib/bulletin as root."
    ).tag(config=True)
    groups = Unicode("", help="Groups whose members may compute, and which share the GPUs. Example: lab,course").tag(
        config=True
    )
    admins = Unicode("", help="Admins of the hub, who manage the pool, too. Example: ann,bob").tag(config=True)
    pool_host = Unicode("", help="Where nodes and notebooks reach this host. Example: 10.77.0.1").tag(config=True)
    public_host = Unicode(
        "127.0.0.1", help="Where people open the hub: an address of this host, or empty for all."
    ).tag(config=True)
    port = Int(8000, min=1, max=65535, help="At which port people open the hub.").tag(config=True)
    first_port = Int(
        0,
        min=0,
        max=65000,
        help="Where the six ports of the hub's and the pool's programs begin. 0: the usual ones, 8081, 8001, 9711, "
        "9001, 9002, 9003.",
    ).tag(config=True)
    proxy = Unicode("", help="The program configurable-http-proxy, if it is not on PATH.").tag(config=True)
    defaults = Bool(False, help="Ask nothing.").tag(config=True)
    aliases = {
        "out": "InitCommand.out",
        "folder": "InitCommand.pool_folder",
        "groups": "InitCommand.groups",
        "admins": "InitCommand.admins",
        "pool-host": "InitCommand.pool_host",
        "public-host": "InitCommand.public_host",
        "port": "InitCommand.port",
        "first-port": "InitCommand.first_port",
        "proxy": "InitCommand.proxy",
    }
    flags = {"defaults": ({"InitCommand": {"defaults": True}}, "Ask nothing.")}

    def start(self) -> None:
        """Ask, write, and say what to type next."""
        kinds = [kind for kind in KINDS if kind in self.extra_args]
        self._asks = sys.stdin.isatty() and not self.defaults
        if len(self.extra_args) > 1 or len(kinds) != len(self.extra_args) or not (kinds or self._asks):
            sys.stderr.write(_USAGE)
            self.status = 2
            return
        answers = self._collect(kinds[0] if kinds else _ask_kind())
        files = compose(answers)
        _write(files)
        sys.stdout.write("".join(f"wrote {file.path}\n" for file in files))
        sys.stdout.write(_next_steps(answers))

    def _collect(self, kind: Kind) -> SiteAnswers:
        out = Path(self._ask("out", "Folder for the files", "bulletin-hub")).expanduser().absolute()
        is_root = os.getuid() == 0
        usual = "/var/lib/bulletin" if is_root and kind != "workstation" else str(out / "pool")
        folder = Path(self._ask("pool_folder", "Folder for the pool's keys and ledger", usual)).expanduser().absolute()
        what = (
            "Groups that share the GPUs (names, or none)" if kind == "workstation" else "Unix groups that may compute"
        )
        groups = split_names(self._ask("groups", what, "", lambda said: check_names(split_names(said), "a group")))
        admins: tuple[str, ...] = ()
        pool_host = ""
        if kind != "workstation":
            own = "" if is_root else pwd.getpwuid(os.getuid()).pw_name
            admins = split_names(
                self._ask("admins", "Admins", own, lambda said: check_names(split_names(said), "a user"))
            )
        if kind == "nodes":
            pool_host = self._ask("pool_host", "Address at which nodes reach this host", "", check_pool_host)
            check_pool_host(pool_host)
        for path in (out, folder):
            if not str(path).isprintable() or any(sign in str(path) for sign in "\"\\$'"):
                raise BadConfig(f"{path} has signs in its name that no configuration file should have. Choose another.")
        first = self.first_port
        inner = tuple(range(first, first + 6)) if first else (8081, 8001, 9711, 9001, 9002, 9003)
        return SiteAnswers(
            kind=kind,
            out=out,
            folder=folder,
            pool_host=pool_host,
            host=self.public_host,
            ports=(self.port, *inner),  # type: ignore[arg-type]  # six of them
            groups=check_names(groups, "a group"),
            admins=check_names(admins, "a user"),
            proxy=self.proxy or shutil.which("configurable-http-proxy") or "configurable-http-proxy",
        )

    def _ask(self, name: str, question: str, default: str, check: object = str) -> str:
        """Return what was typed as an option, else what is typed now, else the default."""
        given = str(getattr(self, name))
        if given or not self._asks:
            return given or default
        return ask_for(question, default, check)  # type: ignore[arg-type]  # traitlets' classes know no callables


def _ask_kind() -> Kind:
    sys.stdout.write(_WHAT)

    def check(said: str) -> None:
        if said not in KINDS:
            raise BadConfig(f"Type one of {', '.join(KINDS)}.")

    return cast("Kind", ask_for("workstation, server or nodes", "workstation", check))


def _write(files: list[StarterFile]) -> None:
    """Write all files or none: one that is there stays as it is. Raises BadConfig."""
    if there := [str(file.path) for file in files if file.path.exists()]:
        raise BadConfig(f"{', '.join(there)} is there already, and is not overwritten. Name another folder with --out.")
    for file in files:
        try:
            file.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file.mode)
        except OSError as error:
            raise BadConfig(
                f"{file.path} cannot be written: {error.strerror}. Name another folder with --out."
            ) from None
        with os.fdopen(handle, "w") as stream:
            os.fchmod(handle, file.mode)
            stream.write(file.text)


def _is_unix_group(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def _next_steps(answers: SiteAnswers) -> str:
    out, port = answers.out, answers.ports[0]
    hub = out / "hub" if answers.kind == "nodes" else out
    look = f"bulletin doctor --hub={hub / 'jupyterhub_config.py'}"
    start = f"jupyterhub -f {hub / 'jupyterhub_config.py'}"
    where = f"http://{answers.host or '127.0.0.1'}:{port}"
    match answers.kind:
        case "workstation":
            return (
                f"\nNow:\n  {look}\n  {start}\nand open {where} with any name and the password in {out / 'password'}\n"
            )
        case "server":
            make = "".join(f"  groupadd {name}\n" for name in answers.groups if not _is_unix_group(name))
            come = f"and open {where} with a Unix user's name and password.\n"
            return f"\nNow, as root:\n{make}  {look}\n  {start}\n{come}"
        case "nodes":
            return (
                f"\nNow, as root on this host, the broker (or the unit bulletin-broker, with these files in "
                f"/etc/bulletin):\n"
                f"  set -a; . {hub / 'hub.env'}; set +a\n"
                f"  bulletin broker --folder {answers.folder} --config {hub / 'bulletin_config.py'}\n"
                f"for each node, here:\n  bulletin node add NAME --folder {answers.folder}\n"
                f"on each node, with NAME.node.json as node.json in /var/lib/bulletin, of mode 0600, and "
                f"{out / 'node' / 'bulletin_config.py'} in /etc/bulletin:\n"
                "  bulletin agent --folder /var/lib/bulletin --config /etc/bulletin/bulletin_config.py\n"
                f"and the hub, here:\n  {look} --config={hub / 'bulletin_config.py'} --hub-env={hub / 'hub.env'}\n"
                f"  {start}\n"
            )
