"""What a node offers: GPUs and MIG slices through NVML, else CPU slots; and how busy a slot is.

NVML lives in the agent alone: it does not survive a fork, and executors are forked. Slots are known by UUID, never by
index: NVML's order is not CUDA's, and an index means something else in every job of a cluster.
"""

import asyncio
import time
from types import ModuleType
from typing import Literal

import msgspec
import structlog

from bulletin.ids import SlotId
from bulletin.wire.messages import SlotOffer
from gpu_worker.agent.gpu_devices import DRIVER_NODES, find_device_nodes
from gpu_worker.agent.visible_gpus import FoundGpu, select_gpus

_SAMPLE_S = 0.2
_EMPTY_TRIES = 50
#: Memory that a driver keeps on a GPU without any process; less than this is nobody's.
_RESIDUE_BYTES = 64 * 2**20


class SlotLoad(msgspec.Struct):
    """What one cell did to its slots, so far; `busy_percent` is the sum of all samples."""

    peak_memory_bytes: int | None = None
    busy_percent: int = 0
    samples: int = 0

    @property
    def mean_utilization(self) -> float | None:
        """Between 0 and 1; None where nothing was measured."""
        return self.busy_percent / self.samples / 100 if self.samples else None


class Inventory:
    """The slots of this node. `nvml` is None on a node without GPUs."""

    def __init__(self, cpu_slots: int, *, use_gpus: bool, visible: str | None = None) -> None:
        """Take which GPUs are this agent's, as CUDA_VISIBLE_DEVICES says it; None is all of the host."""
        self._nvml, self._visible = _nvml() if use_gpus else None, visible
        self._handles: dict[SlotId, object] = {}
        self._nodes: dict[SlotId, tuple[str, ...]] = {}
        self._idle_bytes: dict[int, int] = {}  #: what the driver itself keeps, by handle
        self.offers = self._gpus() if self._nvml is not None else ()
        if not self.offers:
            self._nvml = None
            self.offers = tuple(
                SlotOffer(slot=SlotId(f"cpu-{n}"), kind="cpu", name="CPU slot") for n in range(cpu_slots)
            )

    def _gpus(self) -> tuple[SlotOffer, ...]:
        nvml = self._nvml
        assert nvml is not None
        found: list[tuple[FoundGpu, object, dict[str, object] | None]] = []
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                gpu = nvml.nvmlDeviceGetHandleByIndex(index)
                slices = self._slices(gpu)
                by_uuid = None if slices is None else {_text(nvml.nvmlDeviceGetUUID(one)): one for one in slices}
                facts = FoundGpu(_text(nvml.nvmlDeviceGetUUID(gpu)), tuple(by_uuid or ()), self._minor(gpu))
                found.append((facts, gpu, by_uuid))
            except nvml.NVMLError as error:  # one broken GPU must not take the others away
                _leave_out(index, error)
        offers: list[SlotOffer] = []
        for place, chosen in select_gpus(self._visible, [facts for facts, _, _ in found]):
            _, gpu, by_uuid = found[place]
            try:
                if by_uuid is None:
                    offers.append(self._offer(gpu, "gpu"))
                else:
                    its = by_uuid if chosen is None else chosen
                    offers += [self._offer(by_uuid[one], "mig", of=gpu) for one in its]
            except nvml.NVMLError as error:
                _leave_out(place, error)
        return tuple(offers)

    def _minor(self, gpu: object) -> int | None:
        nvml = self._nvml
        assert nvml is not None
        try:
            return int(nvml.nvmlDeviceGetMinorNumber(gpu))
        except nvml.NVMLError:
            return None

    def _offer(self, handle: object, kind: Literal["gpu", "mig"], of: object = None) -> SlotOffer:
        nvml = self._nvml
        assert nvml is not None
        slot = SlotId(_text(nvml.nvmlDeviceGetUUID(handle)))
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        self._handles[slot] = handle
        self._nodes[slot] = find_device_nodes(nvml, handle, handle if of is None else of)
        self._idle_bytes[id(handle)] = int(memory.used)
        name = _text(nvml.nvmlDeviceGetName(handle))
        milli = 1000 if of is None else self._part_milli(int(memory.total), of)
        return SlotOffer(slot=slot, kind=kind, name=name, memory_bytes=int(memory.total), milli=milli)

    def _part_milli(self, slice_bytes: int, gpu: object) -> int:
        """Compute what a slice costs: its part of the GPU's memory, in thousandths.

        It is 1000, a whole GPU, where the memory of the GPU cannot be read.
        """
        nvml = self._nvml
        assert nvml is not None
        try:
            whole_bytes = int(nvml.nvmlDeviceGetMemoryInfo(gpu).total)
        except nvml.NVMLError:  # in containers that see only their slice
            return 1000
        return min(1000, max(1, 1000 * slice_bytes // max(1, whole_bytes)))

    def _slices(self, gpu: object) -> list[object] | None:
        """List the MIG slices of a GPU; None where MIG is off, and CUDA uses it whole.

        The list is empty where MIG is on and no slice has been made yet: no session can use such a GPU.
        """
        nvml = self._nvml
        assert nvml is not None
        try:
            if nvml.nvmlDeviceGetMigMode(gpu)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
                return None
        except nvml.NVMLError_NotSupported:
            return None
        found = []
        for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
            try:
                found.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index))
            except nvml.NVMLError_NotFound:
                continue
        return found

    def visible(self, slots: tuple[SlotId, ...]) -> str:
        """Return the value of CUDA_VISIBLE_DEVICES for these slots: GPUs and slices by UUID; empty for CPU slots."""
        return ",".join(slot for slot in slots if slot in self._handles)

    def device_nodes(self, slots: tuple[SlotId, ...]) -> tuple[str, ...]:
        """List the device nodes that a process needs for these slots, each once; none for CPU slots."""
        own = [node for slot in slots for node in self._nodes.get(slot, ())]
        return (*DRIVER_NODES, *dict.fromkeys(own)) if own else ()

    async def watch(self, slots: tuple[SlotId, ...], load: SlotLoad) -> None:
        """Sample the slots until cancelled. Samples only GPUs: the load of a CPU slot is its cell's own affair."""
        while self.visible(slots):
            await self.sample(slots, load)
            await asyncio.sleep(_SAMPLE_S)

    async def sample(self, slots: tuple[SlotId, ...], load: SlotLoad) -> None:
        """Add a sample of the slots to the load."""
        handles = [self._handles[slot] for slot in slots if slot in self._handles]
        sample = await asyncio.to_thread(self._sample, handles) if handles else None
        if sample is not None:
            used, busy_percent = sample
            load.peak_memory_bytes = max(load.peak_memory_bytes or 0, used)
            load.busy_percent += busy_percent
            load.samples += len(handles)

    async def measure(self, slot: SlotId) -> tuple[int, int] | None:
        """Return the bytes in use on a GPU, and how busy it is in percent; None where neither can be measured.

        A MIG slice has no counter of how busy it is, and says nothing here.
        """
        handle = self._handles.get(slot)
        kinds = {offer.slot: offer.kind for offer in self.offers}
        return await asyncio.to_thread(self._sample, [handle]) if handle is not None and kinds[slot] == "gpu" else None

    def _sample(self, handles: list[object]) -> tuple[int, int] | None:
        """Sum the bytes in use and the percent busy; None if a GPU does not answer (it is lost, say)."""
        nvml = self._nvml
        assert nvml is not None
        try:
            return sum(map(self._used, handles)), sum(map(self._busy_percent, handles))
        except nvml.NVMLError:
            return None

    def _used(self, handle: object) -> int:
        """Count the bytes that processes use; all in use where the driver does not tell by process (in containers)."""
        nvml = self._nvml
        assert nvml is not None
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        known = [int(process.usedGpuMemory) for process in processes if process.usedGpuMemory is not None]
        if len(known) == len(processes) and known:
            return sum(known)
        if processes:
            return int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
        # Some sandboxes list no process at all: then what is in use above the driver's own counts.
        used = int(nvml.nvmlDeviceGetMemoryInfo(handle).used) - self._idle_bytes.get(id(handle), 0)
        return used if used > _RESIDUE_BYTES else 0

    def _busy_percent(self, handle: object) -> int:
        nvml = self._nvml
        assert nvml is not None
        try:
            return int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        except nvml.NVMLError_NotSupported:  # a MIG slice has no counter of its own
            return 0

    async def wait_empty(self, slots: tuple[SlotId, ...]) -> bool:
        """Wait until no process holds memory on the slots, at most 10 s; False if one does or nobody can tell."""
        handles = [self._handles[slot] for slot in slots if slot in self._handles]
        for _ in range(_EMPTY_TRIES):
            if all([await asyncio.to_thread(self._is_empty, handle) for handle in handles]):
                return True
            await asyncio.sleep(_SAMPLE_S)
        return False

    def _is_empty(self, handle: object) -> bool:
        nvml = self._nvml
        assert nvml is not None
        try:
            return self._used(handle) < _RESIDUE_BYTES
        except nvml.NVMLError:
            return False


def _leave_out(index: int, error: Exception) -> None:
    structlog.get_logger("agent").error("a GPU does not answer and is left out", index=index, nvml=str(error))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _nvml() -> ModuleType | None:
    """Start NVML and return its module; None where there is no driver."""
    try:
        import pynvml
    except ImportError:
        return None
    began = time.monotonic()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        structlog.get_logger("agent").info("no GPU driver here: CPU slots", nvml=str(error))
        return None
    structlog.get_logger("agent").info("NVML started", seconds=round(time.monotonic() - began, 2))
    module: ModuleType = pynvml
    return module
