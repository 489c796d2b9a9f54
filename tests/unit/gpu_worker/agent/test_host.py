"""CPUs and memory of a node, on cgroups made of files."""

import os
from pathlib import Path

import pytest

from gpu_worker.agent import host


@pytest.fixture
def own(tmp_path: Path) -> Path:
    inner = tmp_path / "root" / "pods" / "one"
    inner.mkdir(parents=True)
    own = tmp_path / "cgroup"
    own.write_text("1:name=systemd:/elsewhere\n0::/pods/one\n")
    return own


def test_the_tightest_of_the_cgroups_counts(own: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "pods" / "one" / "cpu.max").write_text("max 100000\n")
    (root / "pods" / "cpu.max").write_text("150000 100000\n")
    (root / "pods" / "one" / "memory.max").write_text("2000000\n")
    (root / "pods" / "memory.max").write_text("3000000\n")
    assert host.cpus(own, root) == 1
    assert host.memory_bytes(own, root) == 2_000_000


def test_less_than_one_cpu_is_one(own: Path, tmp_path: Path) -> None:
    (tmp_path / "root" / "pods" / "cpu.max").write_text("50000 100000\n")
    assert host.cpus(own, tmp_path / "root") == 1


def test_without_limits_all_of_the_host_counts(own: Path, tmp_path: Path) -> None:
    (tmp_path / "root" / "pods" / "memory.max").write_text("max\n")
    everything = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for where in (own, tmp_path / "nothing"):
        assert host.memory_bytes(where, tmp_path / "root") == everything
        assert host.cpus(where, tmp_path / "root") == len(os.sched_getaffinity(0))
