"""Which device nodes open a MIG slice, by what the driver says of it."""

from pathlib import Path

import pytest

from gpu_worker.agent.gpu_devices import find_slice_nodes


def driver_says(capabilities: Path, instance: str, compute: str) -> None:
    folder = capabilities / "gpu2" / "mig" / "gi5"
    (folder / "ci0").mkdir(parents=True)
    (folder / "access").write_text(instance)
    (folder / "ci0" / "access").write_text(compute)


def test_a_slice_is_opened_by_the_capabilities_of_its_two_instances(tmp_path: Path) -> None:
    driver_says(
        tmp_path,
        "DeviceFileMinor: 48\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
        "DeviceFileMinor: 49\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
    )
    assert find_slice_nodes(2, 5, 0, tmp_path) == ("/dev/nvidia-caps/nvidia-cap48", "/dev/nvidia-caps/nvidia-cap49")


@pytest.mark.parametrize("said", ["", "DeviceFileMode: 292\n"])
def test_where_the_driver_does_not_say_which_nobody_guesses(tmp_path: Path, said: str) -> None:
    driver_says(tmp_path, "DeviceFileMinor: 48\n", said)
    with pytest.raises(LookupError, match="DeviceFileMinor"):
        find_slice_nodes(2, 5, 0, tmp_path)
    with pytest.raises(OSError, match="gi6"):
        find_slice_nodes(2, 6, 0, tmp_path)
