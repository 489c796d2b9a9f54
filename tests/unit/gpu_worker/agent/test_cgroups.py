"""How the agent finds its part of the tree of cgroups, and what it does there: in a real one where it can be had."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.ids import AgentId, LeaseId
from gpu_worker.agent.cgroups import CgroupTree, LeaseCgroup, find_base
from tests.integration.conftest import until

AGENT = AgentId(f"test-{os.getpid()}")


@pytest.fixture
def base() -> Iterator[Path]:
    """A real cgroup of this test's own, delegated to it, with all controllers that there are."""
    try:
        root = find_base()
        folder = root / f"bulletin-test-{os.getpid()}"
        folder.mkdir()
        os.setxattr(folder, "user.delegate", b"1")
    except (LookupError, OSError) as error:
        pytest.skip(f"no cgroups here: {error}")
    enabled = (root / "cgroup.subtree_control").read_text().split()
    added = [word for word in (root / "cgroup.controllers").read_text().split() if word not in enabled]
    for controller in added:
        (root / "cgroup.subtree_control").write_text(f"+{controller}")
    yield folder
    for below in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        LeaseCgroup(below).kill()
        until(LeaseCgroup(below).try_remove, "a cgroup to be empty")
    until(LeaseCgroup(folder).try_remove, "the cgroup to be empty")
    for controller in added:
        (root / "cgroup.subtree_control").write_text(f"-{controller}")


def sleeper(cgroup: Path) -> "subprocess.Popen[bytes]":
    """A process in this cgroup, with a child of its own."""
    process = subprocess.Popen([sys.executable, "-c", "import os, time\nos.fork()\ntime.sleep(1000)"])
    (cgroup / "cgroup.procs").write_text(str(process.pid))
    return process


def test_a_broker_names_leases_and_no_folders(base: Path, tmp_path: Path) -> None:
    tree = CgroupTree(base, AGENT)
    tree.create(LeaseId("one"))
    up = "/".join([".."] * len((base / "agent" / "lease").parts))
    with pytest.raises(OSError, match="no name of a lease"):
        tree.create(LeaseId(f"one/{up}{tmp_path}/made"))
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_nobody_else_finds_the_leases_that_there_are(base: Path) -> None:
    own = CgroupTree(base, AGENT).create(LeaseId("own")).folder
    looks = ["sh", "-c", 'test -e "$1/cgroup.events" && echo there; ls "$1/.."', "sh", own]
    run = subprocess.run(looks, user=61_001, group=61_001, extra_groups=[], capture_output=True, text=True)
    assert run.stdout == "there\n", "but its own"
    assert "Permission denied" in run.stderr


def test_one_kill_ends_all_that_is_in_the_cgroup_of_a_lease(base: Path) -> None:
    tree = CgroupTree(base, AGENT)
    cgroup, other = tree.create(LeaseId("one")), tree.create(LeaseId("other"))
    process, kept = sleeper(cgroup.folder), sleeper(other.folder)
    assert cgroup.is_populated
    cgroup.kill()
    assert process.wait(60) == -9
    until(lambda: not cgroup.is_populated, "its child to end, too")
    tree.remove_ended({LeaseId("one")})
    assert cgroup.folder.exists()
    tree.remove_ended({LeaseId("other")})
    assert not cgroup.folder.exists()
    tree.remove_ended(())
    assert other.folder.exists(), "a process is in it"
    assert kept.poll() is None
    other.kill()
    kept.wait(60)


def test_where_the_kernel_has_no_such_kill_they_are_killed_one_by_one(base: Path) -> None:
    cgroup = CgroupTree(base, AGENT).create(LeaseId("one"))
    process = sleeper(cgroup.folder)
    cgroup.kill_each()
    assert process.wait(60) == -9
    until(lambda: not cgroup.is_populated, "its child to end, too")


def test_what_an_earlier_life_of_the_agent_left_is_ended(base: Path) -> None:
    cgroup = CgroupTree(base, AGENT).create(LeaseId("one"))
    process = sleeper(cgroup.folder)
    tree = CgroupTree(base, AGENT)
    assert process.wait(60) == -9
    until(lambda: tree.remove_ended(()) or not cgroup.folder.exists(), "it to be removed")


def test_what_is_frozen_stands_still_and_can_be_killed(base: Path) -> None:
    tree = CgroupTree(base, AGENT)
    cgroup = tree.create(LeaseId("one"))
    process = sleeper(cgroup.folder)
    cgroup.set_frozen(frozen=True)
    until(lambda: cgroup.is_frozen, "it to stand still")
    cgroup.set_frozen(frozen=False)
    until(lambda: not cgroup.is_frozen, "it to go on")
    cgroup.set_frozen(frozen=True)
    cgroup.kill()
    assert process.wait(60) == -9


def test_controllers_are_enabled_also_where_processes_are_in_the_way(base: Path) -> None:
    controllers = (base / "cgroup.controllers").read_text().split()
    if not controllers:
        pytest.skip("no controller of version 2 here")
    process = sleeper(base)
    tree = CgroupTree(base, AGENT, wanted={controllers[0], "nonsense"})
    assert tree.controllers == {controllers[0]}
    assert (base / "bulletin-pool" / "cgroup.procs").read_text().split()[0] == str(process.pid)
    cgroup = tree.create(LeaseId("one"))
    assert (cgroup.folder / "cgroup.controllers").read_text().split() == [controllers[0]]
    LeaseCgroup(base / "bulletin-pool").kill()
    process.wait(60)


def test_processes_of_others_stay_where_they_are(base: Path) -> None:
    if not (base / "cgroup.controllers").read_text().split():
        pytest.skip("no controller of version 2 here")
    os.removexattr(base, "user.delegate")
    process = sleeper(base)
    assert CgroupTree(base, AGENT, wanted=(base / "cgroup.controllers").read_text().split()).controllers == frozenset()
    assert str(process.pid) in (base / "cgroup.procs").read_text().split()
    process.kill()
    process.wait(60)


def test_the_kernel_is_told_the_limits_that_it_has_controllers_for(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max"):
        (tmp_path / name).touch()
    LeaseCgroup(tmp_path).limit(memory_bytes=300_000_000, processes=0, weight=200)
    said = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert said == {"memory.max": "300000000", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": ""}


def test_a_kill_for_want_of_memory_is_known(tmp_path: Path) -> None:
    assert LeaseCgroup(tmp_path).oom_kills == 0
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n")
    assert LeaseCgroup(tmp_path).oom_kills == 3


@pytest.mark.parametrize(
    ("own", "mounts", "has_systemd", "found"),
    [
        ("0::/unit", "cgroup2 {root} cgroup2 rw 0 0", False, "unit"),
        ("0::/unit", "cgroup2 {root} cgroup2 rw 0 0", True, "the agent's unit has no Delegate=yes"),
        ("1:memory:/unit", "cgroup2 {root} cgroup2 rw 0 0", False, "there are no cgroups of version 2"),
        ("0::/unit", "cgroup {root} cgroup rw,memory 0 0", False, "there are no cgroups of version 2"),
        ("0::/gone", "cgroup2 {root} cgroup2 rw 0 0", False, "{root}/gone cannot be changed"),
    ],
)
def test_the_agent_finds_the_part_of_the_tree_that_is_its_own_to_divide(
    tmp_path: Path, own: str, mounts: str, has_systemd: bool, found: str
) -> None:
    root = tmp_path / "cgroup"
    (root / "unit").mkdir(parents=True)
    (tmp_path / "own").write_text(f"{own}\n")
    (tmp_path / "mounts").write_text(mounts.format(root=root) + "\n")
    systemd = tmp_path if has_systemd else tmp_path / "none"
    if found == "unit":
        assert find_base(tmp_path / "own", tmp_path / "mounts", systemd) == root / "unit"
        return
    with pytest.raises(LookupError) as problem:
        find_base(tmp_path / "own", tmp_path / "mounts", systemd)
    assert str(problem.value) == found.format(root=root)


@pytest.mark.parametrize("delegated", ["unit", "unit/sub"])
def test_what_systemd_has_delegated_is_the_agents(tmp_path: Path, delegated: str) -> None:
    """Its processes may be in a cgroup below that (DelegateSubgroup)."""
    root = tmp_path / "cgroup"
    (root / "unit" / "sub").mkdir(parents=True)
    try:
        os.setxattr(root / delegated, "user.delegate", b"1")
    except OSError as error:
        pytest.skip(f"no such attributes here: {error}")
    (tmp_path / "own").write_text("0::/unit/sub\n")
    (tmp_path / "mounts").write_text(f"cgroup2 {root} cgroup2 rw 0 0\n")
    assert find_base(tmp_path / "own", tmp_path / "mounts", tmp_path) == root / delegated
