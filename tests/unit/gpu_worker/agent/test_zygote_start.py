"""The process that forks executors, and what it has of the agent's own environment, which cells see."""

import socket
from pathlib import Path

import pytest

from bulletin.ids import AgentId
from gpu_worker.agent.zygote_start import DEFAULT_ENVIRONMENT, OwnZygotes
from gpu_worker.config import Pool


def environ_of_zygote(folder: Path, *, has_strangers: bool) -> dict[str, str]:
    """Start one whose interpreter writes down what it was started with, and ends."""
    python, written = folder / "python", folder / "environ"
    python.write_text(f"#!/bin/sh\nexec env -0 > {written}\n")
    python.chmod(0o755)
    settings = Pool(folder=str(folder), slots=1, environments={DEFAULT_ENVIRONMENT: str(python)}).settings()
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, its:
        zygotes = OwnZygotes(settings, AgentId("a"), has_strangers=has_strangers)
        assert zygotes.spawn(DEFAULT_ENVIRONMENT, its.fileno(), is_to_preload=False).wait() == 0
    return dict(line.split("=", 1) for line in written.read_text().split("\0") if line)


def test_strangers_see_of_the_agents_environment_what_is_known_to_be_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "the operator's")
    monkeypatch.setenv("CUDA_CACHE_PATH", "/c")
    found = environ_of_zygote(tmp_path, has_strangers=True)
    assert "HF_TOKEN" not in found
    assert found["CUDA_CACHE_PATH"] == "/c"


def test_a_pool_of_ones_own_has_its_users_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "mine")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of the pool")
    found = environ_of_zygote(tmp_path, has_strangers=False)
    assert found["HF_TOKEN"] == "mine"
    assert "JUPYTERHUB_API_TOKEN" not in found
