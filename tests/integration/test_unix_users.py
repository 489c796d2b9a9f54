"""Cells of two Unix users on one node of a root pool: neither reaches anything of the other's, or of the pool's."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_worker.agent.node_protections import find_namespace_problem
from tests.integration.conftest import Notebook, until
from tests.integration.hub_pool import HubPool
from tests.other_users import free_uid, in_mount_namespace, with_readable_python, with_users

if os.getuid() != 0:
    pytest.skip("only root may become other users", allow_module_level=True)
if problem := find_namespace_problem():
    pytest.skip(f"no namespaces here: {problem}", allow_module_level=True)

UIDS = {"alice": free_uid(61_000), "bob": free_uid(62_000)}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubPool]:
    folder = tmp_path_factory.mktemp("users")
    under = in_mount_namespace([*with_readable_python(folder), *with_users(folder, UIDS)])
    options = ("--isolation", "unix-user", "--Pool.memory_per_slot=0.3", "--Pool.processes=120")
    pool = HubPool(tmp_path_factory.mktemp("hub"), 2, *options, under=under)
    yield pool
    pool.close_notebooks()
    pool.stop()


@pytest.fixture(scope="module")
def alice(pool: HubPool) -> Notebook:
    return pool.open("alice", "course")


@pytest.fixture(scope="module")
def bob(pool: HubPool) -> Notebook:
    return pool.open("bob", "course")


def said(notebook: Notebook, source: str) -> str:
    """What a cell prints on the pool; it must come to its end."""
    output = notebook.run(f"%%gpu\n{source}")
    assert output.error is None, output.shown
    return output.stream()


def tried(notebook: Notebook, call: str) -> str:
    """How something fails that a cell tries; or "it works"."""
    source = (
        f"import os\ntry:\n    {call}\n    print('it works')\nexcept OSError as error:\n    print(type(error).__name__)"
    )
    return said(notebook, source).strip()


def test_each_cell_runs_as_its_user_at_home(alice: Notebook, bob: Notebook) -> None:
    for name, notebook in (("alice", alice), ("bob", bob)):
        uid = UIDS[name]
        ids = said(notebook, "import os\nprint(os.getresuid(), os.getresgid(), os.getgroups())")
        assert ids == f"{(uid,) * 3} {(uid,) * 3} [{uid}]\n"
        where = (
            "import os\nprint(os.path.isdir(os.path.expanduser('~')))\n"
            "print('/bulletin-files-' in os.getcwd(), os.environ['USER'])"
        )
        assert said(notebook, where) == (
            f"True\nTrue {name}\n"  # the notebook's folder is in a /tmp that is not the cell's
        )


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm", "~"])
def test_files_of_the_one_are_not_there_for_the_other(alice: Notebook, bob: Notebook, folder: str) -> None:
    path = said(
        alice,
        f"import os\nos.umask(0)\npath = os.path.join(os.path.expanduser({folder!r}), 'secret')\n"
        "print(os.open(path, os.O_CREAT | os.O_RDWR, 0o666) and path)",
    ).strip()
    assert tried(bob, f"open({path!r})") in ("FileNotFoundError", "PermissionError")


def test_shared_memory_of_the_one_is_not_there_for_the_other(alice: Notebook, bob: Notebook) -> None:
    get = "import ctypes\nprint(ctypes.CDLL(None).shmget(815, 4096, {flags}) >= 0)"
    assert said(alice, get.format(flags="0o1666")) == "True\n"
    assert said(bob, get.format(flags="0o666")) == "False\n"


def test_processes_of_the_one_are_not_there_for_the_other(pool: HubPool, alice: Notebook, bob: Notebook) -> None:
    said(alice, "import os\nhere = os.getpid()")
    agent, zygote = (pool.process.part(name) for name in ("agent", "zygote"))
    pids = {agent.pid, zygote.pid, *(child.pid for child in zygote.children()), 1}
    own = said(bob, "import os\nprint(*os.listdir('/proc/self/task'))").split()
    for pid in pids - set(map(int, own)):
        assert tried(bob, f"os.kill({pid}, 9)") in ("ProcessLookupError", "PermissionError")
        assert tried(bob, f"open('/proc/{pid}/environ').read()") in ("FileNotFoundError", "PermissionError")
    assert said(alice, "print(here == os.getpid())") == "True\n"


def test_nothing_of_the_pool_can_be_read(pool: HubPool, bob: Notebook) -> None:
    for name in ("pool.json", "agent.json", "connection.json", "ledger.sqlite"):
        assert (pool.process.folder / name).exists()
        assert tried(bob, f"open({str(pool.process.folder / name)!r})") in ("FileNotFoundError", "PermissionError")
    assert "it works" not in tried(bob, f"open({str(Path('/etc/shadow'))!r})")


def test_no_rights_come_back(bob: Notebook) -> None:
    held = said(
        bob, "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', 'NoNew'))])"
    )
    assert held == "0000000000000000 1\n"
    for call in ("os.setuid(0)", "os.setgroups([0])", "os.chroot('/proc/1/root')"):
        assert tried(bob, call) == "PermissionError"


def test_who_takes_too_much_memory_ends_alone(pool: HubPool, alice: Notebook, bob: Notebook) -> None:
    said(alice, "import os\nkept = os.getpid()")
    for takes in (
        "large = b'x' * 600_000_000",
        "open('/dev/shm/large', 'wb').write(bytes(290_000_000))\nb = b'x' * 90_000_000",
        "import os\nkept = os.memfd_create('x')\nfor _ in range(60):\n    os.write(kept, bytes(10_000_000))",
    ):
        lost = bob.run(f"%%gpu\n{takes}\nimport time\nwhile True:\n    time.sleep(1)")
        assert lost.error is not None
        assert "may use 300 MB" in lost.error["evalue"]
    assert said(alice, "print(kept == os.getpid())") == "True\n"
    assert said(bob, "import os\nprint(os.listdir('/dev/shm'))") == "[]\n"


def test_a_fork_bomb_ends_alone(alice: Notebook, bob: Notebook) -> None:
    said(alice, "import os\nkept = os.getpid()")
    lost = bob.run(
        "%%gpu --memory 8GB\nimport os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    )
    assert lost.error is not None
    assert "processes and threads and may have 120, so all of it was ended" in lost.error["evalue"]
    assert (
        said(alice, "import subprocess\nprint(kept == os.getpid(), subprocess.run(['true']).returncode)") == "True 0\n"
    )
    assert said(bob, "print('again')") == "again\n"


def test_what_a_user_leaves_behind_is_gone_with_the_session(pool: HubPool, bob: Notebook) -> None:
    said(
        bob,
        "import os, subprocess\nsubprocess.Popen(['sleep', '10000'], start_new_session=True)\n"
        "open('/tmp/left', 'w')\nopen(os.path.expanduser('~/mine'), 'w').write('kept')",
    )
    zygote = pool.process.part("zygote")
    before = {child for child in zygote.children(recursive=True) if child.uids().real == UIDS["bob"]}
    assert len(before) == 3  # with the one that has the files of the notebook's folder
    bob.run("%gpu reset")
    until(lambda: not any(process.is_running() for process in before), "all of it to end")
    assert (
        said(bob, "import os\nprint(os.path.exists('/tmp/left'), open(os.path.expanduser('~/mine')).read())")
        == "False kept\n"
    )
