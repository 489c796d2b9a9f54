"""Several hosts on one machine: namespaces of network, mounts and names on one bridge. Only root makes them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.integration.conftest import PATIENCE_S
from tests.other_users import with_readable_python

#: Folders that each host has for itself.
_OWN = ("/etc/bulletin", "/var/lib/bulletin", "/dev/shm")
_READY = "ready"


def skip_without_hosts() -> None:
    """Skip the test where hosts cannot be made, with the reason."""
    if os.getuid() != 0:
        pytest.skip("only root makes namespaces of networks")
    missing = [name for name in ("ip", "nsenter", "unshare") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"this machine has not: {', '.join(missing)}")


def _do(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"


class Host:
    """One of them. Commands run there by `under`."""

    def __init__(self, name: str, address: str, holder: int, network: str, folder: Path) -> None:
        self.name, self.address, self._holder, self.network, self.folder = name, address, holder, network, folder

    @property
    def under(self) -> list[str]:
        """The words before those of a command that is to run on this host, in its folder."""
        enter = ["nsenter", "-t", str(self._holder), "-m", "-n", "-u", "--"]
        return [*enter, "env", "-C", str(self.folder), f"PATH={self.folder.parent / 'bin'}:{os.environ['PATH']}"]

    def run(self, script: str) -> str:
        """What a script of a shell prints, on both ways; it must succeed."""
        done = subprocess.run(
            [*self.under, "sh", "-ec", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def write(self, path: str, text: str) -> None:
        """Write a file there."""
        subprocess.run([*self.under, "tee", path], input=text, text=True, stdout=subprocess.DEVNULL, check=True)

    @contextlib.contextmanager
    def cut(self) -> Iterator[None]:
        """Let nothing come to it or leave it until the end of the block."""
        _do("ip", "-n", self.network, "link", "set", "eth0", "down")
        try:
            yield
        finally:
            _do("ip", "-n", self.network, "link", "set", "eth0", "up")

    def readdress(self, address: str) -> None:
        """Give it another address in the place of its own."""
        _do("ip", "-n", self.network, "addr", "flush", "dev", "eth0", "scope", "global")
        _do("ip", "-n", self.network, "addr", "add", f"{address}/24", "dev", "eth0")
        self.address = address

    @contextlib.contextmanager
    def firewall(self, port: int, side: str = "sport") -> Iterator[None]:
        """Drop without a word what this port of it answers, or what it says to this port of others ("dport").

        Until the end of the block. By a route to nowhere: there are kernels without a firewall.
        """
        rule = ("ipproto", "tcp", side, str(port), "table", "99")
        _do("ip", "-n", self.network, "route", "replace", "blackhole", "default", "table", "99")
        _do("ip", "-n", self.network, "rule", "add", *rule)
        try:
            yield
        finally:
            _do("ip", "-n", self.network, "rule", "del", *rule)


@contextlib.contextmanager
def made_hosts(folder: Path, names: Sequence[str], commands: Sequence[str] = ()) -> Iterator[dict[str, Host]]:
    """Make hosts of these names, 10.77.0.1 first, then .11, .12, until the end of the block.

    Each runs the commands of a shell in its own mounts first; `bulletin` is on its path, as this checkout has it.
    """
    tag = uuid.uuid4().hex[:5]
    switch = f"bl{tag}s"
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / "bulletin").write_text(f'#!/bin/sh\nexec {sys.executable} -P -s -m gpu_worker.cli "$@"\n')
    (binaries / "bulletin").chmod(0o755)
    with contextlib.ExitStack() as stack:
        for path in map(Path, _OWN):  # stays: who removes it unmounts it in all hosts that there are
            path.mkdir(exist_ok=True)
        _do("ip", "netns", "add", switch)
        stack.callback(_do, "ip", "netns", "del", switch)
        _do("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
        _do("ip", "-n", switch, "link", "set", "br0", "up")
        hosts: dict[str, Host] = {}
        for number, name in enumerate(names):
            address = f"10.77.0.{10 + number if number else 1}"
            network, outer = f"bl{tag}{number}", f"v{tag}{number}"
            own = folder / name
            own.mkdir()
            own.chmod(0o755)
            _do("ip", "netns", "add", network)
            stack.callback(_do, "ip", "netns", "del", network)
            _do("ip", "link", "add", outer, "netns", switch, "type", "veth", "peer", "name", "eth0", "netns", network)
            _do("ip", "-n", switch, "link", "set", outer, "master", "br0", "up")
            _do("ip", "-n", network, "addr", "add", f"{address}/24", "dev", "eth0")
            for link in ("eth0", "lo"):
                _do("ip", "-n", network, "link", "set", link, "up")
            hosts[name] = Host(name, address, _hold(stack, network, name, own, commands), network, own)
        yield hosts


def _hold(stack: contextlib.ExitStack, network: str, name: str, folder: Path, commands: Sequence[str]) -> int:
    """Start the process whose namespaces are the host's; its number."""
    boot = folder / "boot_id"
    boot.write_text(f"{uuid.uuid4()}\n")
    script = [
        *(f"mount -t tmpfs -o mode=755 tmpfs {path}" for path in _OWN),
        "chmod 1777 /dev/shm",
        f"mount --bind {boot} /proc/sys/kernel/random/boot_id",
        f"hostname {name}",
        *commands,
        f"echo {_READY}",
        "exec sleep infinity",
    ]
    holder = subprocess.Popen(
        ["ip", "netns", "exec", network, "unshare", "-m", "-u", "sh", "-ec", "\n".join(script)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    stack.callback(holder.wait)
    stack.callback(holder.stdout.close)
    stack.callback(holder.send_signal, signal.SIGKILL)
    assert holder.stdout.readline().strip() == _READY
    return holder.pid


def readable_python(folder: Path) -> list[str]:
    """Commands that let users of hosts read this Python."""
    return with_readable_python(folder)
