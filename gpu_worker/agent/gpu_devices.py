"""The device nodes of GPUs and MIG slices: without its node in /dev, a process cannot use one."""

import re
from pathlib import Path
from types import ModuleType

import structlog

#: What every process needs that uses any GPU.
DRIVER_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
_CAPABILITIES = Path("/proc/driver/nvidia/capabilities")


def find_device_nodes(nvml: ModuleType, handle: object, gpu: object) -> tuple[str, ...]:
    """Find the nodes of a GPU, or of a slice (`handle`) of one (`gpu`), without those of the driver.

    Empty where the driver does not tell: cells with namespaces then do not find it.
    """
    try:
        minor = int(nvml.nvmlDeviceGetMinorNumber(gpu))
        nodes = (f"/dev/nvidia{minor}",)
        if handle is gpu:
            return nodes
        instance = int(nvml.nvmlDeviceGetGpuInstanceId(handle))
        compute = int(nvml.nvmlDeviceGetComputeInstanceId(handle))
        return (*nodes, *find_slice_nodes(minor, instance, compute))
    except (nvml.NVMLError, OSError, LookupError) as error:
        structlog.get_logger("agent").warning(
            "the device node of a GPU is not known: cells with namespaces do not find it, unless Pool.devices lists it",
            problem=str(error),
        )
        return ()


def find_slice_nodes(minor: int, instance: int, compute: int, capabilities: Path = _CAPABILITIES) -> tuple[str, ...]:
    """Find what opens a MIG slice, beside its GPU's node. Raises OSError or LookupError where the driver tells none."""
    folder = capabilities / f"gpu{minor}" / "mig" / f"gi{instance}"
    nodes = []
    for file in (folder / "access", folder / f"ci{compute}" / "access"):
        found = re.search(r"^DeviceFileMinor:\s*(\d+)", file.read_text(), re.MULTILINE)
        if found is None:
            raise LookupError(f"{file} has no DeviceFileMinor")
        nodes.append(f"/dev/nvidia-caps/nvidia-cap{found[1]}")
    return tuple(nodes)
