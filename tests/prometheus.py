"""A real Prometheus for tests: the one on PATH, else Debian's, unpacked into a folder and installed nowhere."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RULES = ROOT / "deploy" / "prometheus" / "bulletin.rules.yml"
CONFIG = ROOT / "deploy" / "prometheus" / "prometheus.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "bulletin.json"
#: Where programs of this test run were unpacked.
_unpacked: dict[str, Path] = {}


def find_program(name: str, folder: Path) -> str:
    """The path of `prometheus` or `promtool`; skips the test where there is none to be had."""
    found = shutil.which(name) or _unpacked.get(name)
    if found is not None:
        return str(found)
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip(f"{name} is not on PATH, and this is no Debian to get it from")
    downloads = folder / "debian"
    downloads.mkdir(exist_ok=True)
    done = subprocess.run(
        ["apt-get", "download", "prometheus"], cwd=downloads, capture_output=True, text=True, timeout=240, check=False
    )
    packages = list(downloads.glob("prometheus_*.deb"))
    if done.returncode or not packages:
        pytest.skip(f"{name} is not on PATH, and `apt-get download prometheus` fails: {done.stderr[-200:]}")
    subprocess.run(["dpkg-deb", "-x", packages[0], downloads / "root"], check=True)
    _unpacked.update({one: downloads / "root" / "usr" / "bin" / one for one in ("prometheus", "promtool")})
    assert os.access(_unpacked[name], os.X_OK)
    return str(_unpacked[name])
