"""The GPUs of this machine as NVML tells them, read without any of our own code: what the pool is compared with."""

from typing import Any, NamedTuple

try:
    import pynvml
except ImportError:
    pynvml = None  # type: ignore[assignment]


class Card(NamedTuple):
    """A GPU, or a slice of one."""

    uuid: str
    name: str
    memory_bytes: int
    handle: Any

    @property
    def used_bytes(self) -> int:
        """What is in use on the device, whoever uses it."""
        return int(pynvml.nvmlDeviceGetMemoryInfo(self.handle).used)

    @property
    def holders(self) -> list[int]:
        """The processes that hold memory on it, as the driver numbers them."""
        return [process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(self.handle)]


def why_not() -> str | None:
    """Why there is no GPU to test on; None where there is one. Loads neither torch nor CUDA."""
    if pynvml is None:
        return "nvidia-ml-py is not installed, so nobody can tell whether there is a GPU"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return f"there is no GPU here: NVML says {str(error)!r}"
    return None if pynvml.nvmlDeviceGetCount() else "there is no GPU here: NVML finds a driver and no device"


def _is_cut(gpu: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(gpu)[0])
    except pynvml.NVMLError_NotSupported:
        return False


def _slices(gpu: Any) -> list[Any]:
    found = []
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            found.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index))
        except pynvml.NVMLError_NotFound:
            continue
    return found


def cards() -> list[Card]:
    """What CUDA can use: whole GPUs, and the slices of those that are cut."""
    handles: list[Any] = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
        handles += _slices(gpu) if _is_cut(gpu) else [gpu]
    return [
        Card(
            pynvml.nvmlDeviceGetUUID(handle),
            pynvml.nvmlDeviceGetName(handle),
            int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
            handle,
        )
        for handle in handles
    ]
