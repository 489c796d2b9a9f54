"""What doctor says of GPUs: one without a driver, and one that others use, by the stand-in for NVML."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpu_worker.config import Pool
from gpu_worker.doctor import node_checks
from gpu_worker.doctor.pool_setup import PoolSetup
from tests.integration.examining import examine


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this computer has a driver")
def test_a_card_without_a_driver_is_named(tmp_path: Path) -> None:
    card = tmp_path / "0000:01:00.0"
    card.mkdir()
    (card / "vendor").write_text("0x10de\n")
    (card / "class").write_text("0x030200\n")
    setup = PoolSetup(settings=Pool(folder=str(tmp_path)).settings())
    (found,) = node_checks.check_gpus(setup, tmp_path)
    assert found.check == "gpu-driver"
    assert "NVIDIA GPUs (1), and NVML does not start" in found.what
    (card / "vendor").write_text("0x8086\n")
    assert list(node_checks.check_gpus(setup, tmp_path)) == []
    (card / "vendor").write_text("0x10de\n")
    on_purpose = PoolSetup(settings=Pool(folder=str(tmp_path), device="cpu").settings())
    assert list(node_checks.check_gpus(on_purpose, tmp_path)) == []


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc) on PATH to build the stand-in for NVML with")
def test_a_gpu_that_others_use_is_named_with_the_process(tmp_path: Path) -> None:
    source = Path(__file__).with_name("nvml_stub.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libnvidia-ml.so.1", source], check=True)
    state = tmp_path / "gpu"
    stub = {
        "LD_LIBRARY_PATH": f"{tmp_path}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}",
        "NVML_STUB": str(state),
    }
    words = ("--folder", tmp_path / "pool", "--Pool.isolation=shared")
    state.write_text("0 1 512 512 0")
    assert "GPU 0 is used by" in examine(*words, **stub).says("gpu-in-use")
    state.write_text("0 0 0 0 0")
    assert examine(*words, **stub).found == {}
    state.write_text("0 0 0 0 -1")
    assert "GPU 0 does not answer" in examine(*words, **stub).says("gpu-lost")
