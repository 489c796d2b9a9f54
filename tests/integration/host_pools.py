"""A pool over several hosts, set up by the commands of docs/howto/several-hosts.md and by nothing else."""

import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.clean_environ import clean_environ
from tests.integration.conftest import PATIENCE_S, Notebook, until
from tests.integration.hosts import Host, made_hosts, readable_python, skip_without_hosts
from tests.other_users import free_uid, with_users

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "several-hosts.md"
USERS = {"alice": free_uid(61_000), "bob": free_uid(62_000)}
#: By which the pool can be found.
POOL_NAME = "pool.example"
#: Of each node, so that two cells need two of them, and nothing large is imported first.
SMALL = "\nc.Pool.slots = 1\nc.Pool.device = 'cpu'\nc.Pool.preload = []\nc.Pool.leave_grace = 1\n"


def blocks(title: str) -> list[tuple[str, str]]:
    """The blocks of code in a section of the page, with their languages."""
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)


class Site:
    """The hosts, and what runs on them."""

    #: Of the broker, and what starts it.
    broker: subprocess.Popen[bytes]
    start_broker: Callable[[], subprocess.Popen[bytes]]

    def __init__(self, stack: contextlib.ExitStack, hosts: dict[str, Host], names: Path) -> None:
        """Take the file that is their name service."""
        self.stack, self.hosts, self.names = stack, hosts, names
        self.logs = {name: host.folder / "log" for name, host in hosts.items()}

    def start(self, name: str, script: str, **environ: str) -> subprocess.Popen[bytes]:
        """Start what does not end by itself."""
        with self.logs[name].open("ab") as log:
            process = subprocess.Popen(
                [*self.hosts[name].under, "sh", "-ec", f"exec {script}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environ() | environ,
            )
        self.stack.callback(process.wait, PATIENCE_S)
        self.stack.callback(process.terminate)
        return process

    def until_said(self, name: str, words: str) -> None:
        """Wait until the log of what runs on a host has these words."""
        until(lambda: words in self.logs[name].read_text(), f"{words!r} in {self.logs[name]}")

    def status(self) -> str:
        """What `bulletin status` says, and its exit status."""
        (_, command), *_ = [one for one in blocks("On each node") if "bulletin status" in one[1]]
        return self.hosts["hub"].run(f"{command.strip()} && echo all there || echo exit status $?")

    def start_hub(self) -> dict[str, str]:
        """Start a hub of two users on the hub's host; the variables by which its service knows it."""
        hub = subprocess.Popen(
            [*self.hosts["hub"].under, sys.executable, "-m", "tests.integration.hub_process", *USERS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert hub.stdin is not None
        assert hub.stdout is not None
        self.stack.callback(hub.wait, PATIENCE_S)
        self.stack.callback(hub.stdout.close)
        self.stack.callback(hub.stdin.close)
        address = f"http://127.0.0.1:{hub.stdout.readline().strip()}/hub/api"
        return {"JUPYTERHUB_API_URL": address, "JUPYTERHUB_API_TOKEN": "service"}

    def open_notebook(self, user: str, on: str = "hub") -> Notebook:
        """A notebook of a user's server, which is on the hub's host, or on another one."""
        public = self.hosts["hub"].run("cat /var/lib/bulletin/public.json")
        found = dict(re.findall(r'"(\w+)": "([^"]+)"', public))
        environ = {
            "BULLETIN_ADDRESS": found["address"],
            "BULLETIN_PUBLIC_KEY": found["public_key"],
            "JUPYTERHUB_API_TOKEN": f"{user}-token",
            # Root's own is below what is mounted over it, and other tests' kernels write to its history.
            "IPYTHONDIR": str(self.hosts[on].folder / "ipython"),
        }
        notebook = Notebook(environ, self.hosts[on].folder, under=self.hosts[on].under)
        self.stack.callback(notebook.close)
        return notebook


@contextlib.contextmanager
def made_site(nodes: Sequence[str], host: str = "") -> Iterator[Site]:
    """Make a host for the hub and the broker, and these nodes, with a pool as the page says.

    `host` is what its Pool.host is instead of the address there. The name service of all hosts is one file.
    """
    skip_without_hosts()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o711)
        names = folder / "hosts"
        names.write_text(f"127.0.0.1 localhost\n10.77.0.1 {POOL_NAME}\n")
        users = [*readable_python(folder), *with_users(folder, USERS), f"mount --bind {names} /etc/hosts"]
        site = Site(stack, stack.enter_context(made_hosts(folder, ("hub", *nodes), users)), names)
        environ = site.start_hub()
        hub = site.hosts["hub"]
        (_, config), (_, broker), (_, add) = blocks("On the broker's host")
        hub.write("/etc/bulletin/bulletin_config.py", config.replace("10.77.0.1", host or "10.77.0.1"))
        site.start_broker = lambda: site.start("hub", broker.strip(), **environ)
        site.broker = site.start_broker()
        site.until_said("hub", "broker ready")
        hub.run(add)
        (_, install), (_, config), (_, agent), _ = blocks("On each node")
        for name in nodes:
            node = site.hosts[name]
            (hub.folder / f"{name}.node.json").rename(node.folder / f"{name}.node.json")  # by scp, so to speak
            node.run(install.replace("node1", name))
            node.write("/etc/bulletin/bulletin_config.py", config + SMALL)
            site.start(name, agent.strip())
        for name in nodes:
            site.until_said(name, 'event="accepted by the broker"')
        yield site
