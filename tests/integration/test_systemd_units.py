"""The units that the project ships: understood by systemd, and a pool of theirs works with the rights they leave it."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from bulletin.wire import keys
from bulletin.wire.messages import Picture
from bulletin_spawner.service.broker_client import BrokerClient
from gpu_worker.agent.cgroups import LeaseCgroup, find_base
from gpu_worker.agent.node_protections import find_namespace_problem
from tests.integration.conftest import Notebook, until
from tests.integration.hub_pool import ToldHub, started_hub
from tests.other_users import free_uid, in_mount_namespace, with_readable_python, with_users
from tests.processes import has_ended
from tests.units import FOLDER, read_unit

#: A hub, the broker, and the part of the agent that is root.
Parts = tuple[ToldHub, subprocess.Popen[bytes], subprocess.Popen[bytes]]
#: By `systemd-analyze security`: 0 is all that it knows, 10 is nothing. Cells are in the agent's unit, and inherit.
EXPOSURE = {"bulletin-broker.service": 20, "bulletin-agent.service": 70}
CAP_SYS_RESOURCE = 24
UIDS = {"alice": free_uid(61_000), "bulletin": free_uid(62_000)}


def test_each_unit_is_known_to_this_test() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(EXPOSURE)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("name", EXPOSURE)
def test_systemd_understands_each_unit_and_finds_it_confined(name: str, tmp_path: Path) -> None:
    unit = tmp_path / name
    program = shutil.which("true")
    assert program is not None
    unit.write_text((FOLDER / name).read_text().replace("/opt/bulletin/bin/bulletin", program))
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=True)
    assert verified.stderr == ""
    limit = f"--threshold={EXPOSURE[name]}"
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", limit, unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert rated.returncode == 0, rated.stdout + rated.stderr


def test_a_stop_is_said_to_the_agent_alone_which_gives_cells_their_time() -> None:
    assert read_unit("bulletin-agent.service")["Service"]["KillMode"] == ["mixed"]


def command(name: str, folder: Path) -> list[str]:
    """What a unit starts, with the rights that it leaves its program, for a pool in this folder."""
    service = read_unit(name)["Service"]
    (words,) = service["ExecStart"]
    program, part, *options = words.split()
    assert (program, part) == ("/opt/bulletin/bin/bulletin", name.removesuffix(".service").removeprefix("bulletin-"))
    places = {"/var/lib/bulletin": folder, "/etc/bulletin/bulletin_config.py": folder.parent / "bulletin_config.py"}
    options = [str(places.get(word, word)) for word in options]
    assert service["NoNewPrivileges"] == ["yes"]
    rights = [f"+{word.lower().removeprefix('cap_')}" for word in service["CapabilityBoundingSet"][0].split()]
    confined = ["setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set={','.join(['-all', *rights])}"]
    if "User" in service:
        confined += ["--reuid", str(UIDS[service["User"][0]]), "--regid", str(UIDS[service["User"][0]])]
        confined += ["--clear-groups"]
    return [*confined, sys.executable, "-P", "-m", "gpu_worker.cli", part, *options]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:  # not below pytest's, which is for its user alone
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@pytest.fixture
def unit_cgroup() -> Iterator[Path | None]:
    """A cgroup as systemd gives one to a unit with Delegate=yes, where there are any of version 2."""
    try:
        base = find_base() / f"bulletin-test-unit-{os.getpid()}"
        base.mkdir()
        os.setxattr(base, "user.delegate", b"1")
    except (LookupError, OSError):
        yield None
        return
    yield base
    for below in sorted((path for path in base.rglob("*") if path.is_dir()), reverse=True):
        LeaseCgroup(below).kill()
        until(LeaseCgroup(below).try_remove, "a cgroup to be empty")
    until(LeaseCgroup(base).try_remove, "the unit's cgroup to be empty")


@pytest.fixture
def parts(
    folder: Path, unit_cgroup: Path | None
) -> Iterator[tuple[ToldHub, subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """A hub, and broker and agent as the units start them, for a pool in `folder / "bulletin"`."""
    if os.getuid() != 0:
        pytest.skip("only root may become other users")
    if problem := find_namespace_problem():
        pytest.skip(f"no namespaces here: {problem}")
    under = in_mount_namespace(
        [*with_readable_python(folder), *with_users(folder, UIDS, shells={"bulletin": "/usr/sbin/nologin"})]
    )
    theirs = folder / "theirs" / "bin" / "python"
    theirs.parent.mkdir(parents=True)
    theirs.symlink_to(sys.executable)
    os.lchown(theirs, UIDS["alice"], UIDS["alice"])
    (folder / "bulletin_config.py").write_text(
        "c.Pool.isolation = 'unix-user'\nc.Pool.agent_user = 'bulletin'\nc.Pool.require = ['namespaces']\n"
        "c.Pool.slots = 1\nc.Pool.device = 'cpu'\nc.Pool.preload = []\nc.Pool.leave_grace = 1\n"
        f"c.Pool.environments = {{'theirs': {str(theirs)!r}}}\n"
    )
    pool = folder / "bulletin"  # systemd makes it for the broker's user; here it is that user's home
    pool.chmod(0o711)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("BULLETIN_")}
    with started_hub() as hub, contextlib.ExitStack() as stack:
        broker = subprocess.Popen([*under, *command("bulletin-broker.service", pool)], env=environ | hub.environ)
        stack.callback(end, broker)
        until((pool / "public.json").exists, "the broker")
        joins = ["sh", "-c", f'echo $$ > {unit_cgroup}/cgroup.procs && exec "$@"', "sh"] if unit_cgroup else []
        agent = subprocess.Popen([*under, *joins, *command("bulletin-agent.service", pool)], env=environ)
        stack.callback(end, agent)
        yield hub, broker, agent


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


@pytest.fixture
def notebook(folder: Path, parts: Parts) -> Iterator[Notebook]:
    """A notebook of alice's."""
    public = keys.read_public(folder / "bulletin" / "public.json")
    environ = {
        "BULLETIN_ADDRESS": public.address,
        "BULLETIN_PUBLIC_KEY": public.public_key,
        "JUPYTERHUB_API_TOKEN": parts[0].add_user("alice", "course"),
    }
    notebook = Notebook(environ, folder)
    yield notebook
    notebook.close()


def test_nothing_of_a_pool_is_root_but_what_starts_cells_as_their_users(
    folder: Path, parts: Parts, notebook: Notebook
) -> None:
    hub, broker, root_part = parts
    uid = UIDS["alice"]
    said = notebook.run("%%gpu\nimport os\nprint(os.getresuid(), os.environ['HOME'], os.listdir('/proc').count('1'))")
    assert said.stream() == f"({uid}, {uid}, {uid}) {folder / 'alice'} 1\n", said.shown
    agent, zygote = find_children(root_part)
    assert [process.uids().real for process in (psutil.Process(broker.pid), agent)] == [UIDS["bulletin"]] * 2
    assert [held_rights(process.pid) for process in (broker, agent)] == [0, 0]
    assert [psutil.Process(root_part.pid).uids().real, zygote.uids().real] == [0, 0]
    rights = read_unit("bulletin-agent.service")["Service"]["CapabilityBoundingSet"][0].split()
    lacking = 0 if held_rights(os.getpid()) & 1 << CAP_SYS_RESOURCE else 1  # as in many containers
    assert [held_rights(process.pid).bit_count() for process in (root_part, zygote)] == [len(rights) - lacking] * 2
    (copier,) = (one for one in zygote.children() if "gpu_worker.executor.log_copier" in one.cmdline())
    assert held_rights(copier.pid) == 0
    assert {connection.laddr for connection in psutil.Process(root_part.pid).net_connections("inet")} == set()
    page = BrokerClient(folder / "bulletin", hub.environ["JUPYTERHUB_API_TOKEN"])
    assert [slot.state for slot in _run_aside(page.fetch_picture()).slots] == ["hot"]
    page.close()
    files = {path.name: path.stat() for path in (folder / "bulletin").iterdir()}
    assert {name for name, facts in files.items() if facts.st_mode & 0o077} == {"public.json", "door"}
    assert {facts.st_uid for facts in files.values()} == {UIDS["bulletin"]}
    refused = notebook.run("%%gpu --environment theirs\nprint('runs')")
    assert refused.error is not None
    assert "others than root can change the environment" in refused.shown


def test_cells_are_interrupted_limited_and_ended_by_an_agent_that_is_not_root(
    notebook: Notebook, unit_cgroup: Path | None
) -> None:
    own = notebook.run("%%gpu\nprint(open('/proc/self/cgroup').read())").stream()
    assert unit_cgroup is None or "/lease-l-" in own, "each session has a cgroup of the agent's"
    assert notebook.run("%%gpu\nimport os\nkept = os.getpid()").error is None
    endless = "%%gpu\nimport time\nprint('started')\nwhile True:\n    time.sleep(0.05)"
    stopped = notebook.run_until(endless, "started", notebook.interrupt)
    assert stopped.error is not None
    assert stopped.error["ename"] == "KeyboardInterrupt"
    assert notebook.run("%%gpu\nprint(kept == os.getpid())").stream() == "True\n", "it was interrupted, not ended"
    lost = notebook.run("%%gpu --memory 0.2GB\nx = b'x' * 600_000_000\nwhile True:\n    pass")
    assert lost.error is not None
    assert "may use 200 MB" in lost.error["evalue"], lost.shown
    assert notebook.run("%%gpu\nprint('goes on')").stream() == "goes on\n"


@pytest.mark.parametrize("which", ["root part", "agent"])
def test_all_of_it_ends_with_either_part_of_the_agent(parts: Parts, notebook: Notebook, which: str) -> None:
    assert (
        notebook.run("%%gpu\nimport subprocess\nsubprocess.Popen(['sleep', '10000'], start_new_session=True)").error
        is None
    )
    root_part = psutil.Process(parts[2].pid)
    everything = [root_part, *root_part.children(recursive=True)]
    assert len(everything) > len(("root part", "agent", "zygote", "init", "executor"))
    (root_part if which == "root part" else find_children(parts[2])[0]).kill()
    until(lambda: not any(is_there(process) for process in everything), "all of it to end")


def find_children(root_part: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The agent that is not root, and the zygote."""
    children = filter(is_there, psutil.Process(root_part.pid).children())
    found = {name: process for process in children for name in process.cmdline()}
    return [found["agent"], found["gpu_worker.executor"]]


def is_there(process: psutil.Process) -> bool:
    return not has_ended(process)


def _run_aside(answer: Coroutine[Any, Any, Picture]) -> Picture:
    """Run this in a thread: the notebook's client has the event loop of this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, answer).result()


def held_rights(pid: int) -> int:
    """The capabilities that a process has, as a set of bits."""
    status = Path(f"/proc/{pid}/status").read_text()
    (held,) = (line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))
    return int(held, 16)
