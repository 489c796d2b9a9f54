"""The node: its GPUs and their driver, who else uses them, and what keeps cells apart and to their limits."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from gpu_worker.agent.cgroups import find_base
from gpu_worker.agent.node_protections import find_namespace_problem
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.pool_setup import PoolSetup

_PCI = Path("/sys/bus/pci/devices")
_NVIDIA = "0x10de"
#: Classes of devices that compute or draw.
_DISPLAY = "0x03"
_SYSTEMD = Path("/run/systemd/system")
#: So many processes are named.
_NAMED = 5
_UNIT = "bulletin-agent.service"


def check_gpus(setup: PoolSetup, pci: Path = _PCI) -> Iterator[Diagnosis]:
    """Look whether GPUs that are in the computer can be used, and whether anybody else uses them."""
    if not setup.settings.use_gpus:
        return
    nvml, problem = _start_nvml()
    count = _count_cards(pci)
    if nvml is None:
        if count:
            yield Diagnosis(
                check="gpu-driver",
                what=f"This computer has NVIDIA GPUs ({count}), and NVML does not start: {problem}.",
                why="The pool offers CPU slots instead, and cells run without a GPU.",
                remedy="Install the driver, or restart the computer after its upgrade; `nvidia-smi` must work. In a "
                "container, pass the GPUs in (docker run --gpus all). CPU slots on purpose: Pool.device = 'cpu'.",
            )
        return
    try:
        yield from _check_each(nvml, setup)
    finally:
        nvml.nvmlShutdown()


def _check_each(nvml: ModuleType, setup: PoolSetup) -> Iterator[Diagnosis]:
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
            pids = [one.pid for one in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)]
        except nvml.NVMLError as error:
            yield Diagnosis(
                check="gpu-lost",
                what=f"GPU {index} does not answer: {error}.",
                why="The pool leaves it out.",
                remedy="`dmesg | grep -i xid` says why; restart the computer, or take the card out.",
            )
            continue
        strangers = [pid for pid in pids if not _is_of_a_pool(pid)]
        if strangers:
            yield Diagnosis(
                check="gpu-in-use",
                what=f"GPU {index} is used by {_list_processes(strangers)}, which no pool started.",
                why="Cells share its memory and time with that, and may find none.",
                remedy="End those, or run the pool in a container without that GPU.",
                level="advice" if setup.is_broker_up else "wrong",
            )


def _start_nvml() -> tuple[ModuleType | None, str]:
    try:
        import pynvml
    except ImportError:
        return None, "the package nvidia-ml-py is not installed (pip install 'bulletin[pool]')"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return None, str(error)
    return pynvml, ""


def _count_cards(pci: Path) -> int:
    """Count the NVIDIA cards that the kernel sees, with a driver or without."""
    found = 0
    for device in pci.iterdir() if pci.is_dir() else ():
        with contextlib.suppress(OSError):
            is_ours = (device / "vendor").read_text().strip() == _NVIDIA
            found += is_ours and (device / "class").read_text().startswith(_DISPLAY)
    return found


def _is_of_a_pool(pid: int) -> bool:
    """Whether a process is an executor, or what one has started."""
    while pid > 1:
        try:
            if b"gpu_worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def _list_processes(pids: Sequence[int]) -> str:
    more = f" and {len(pids) - _NAMED} more" if len(pids) > _NAMED else ""
    return ", ".join(map(_describe_process, pids[:_NAMED])) + more


def _describe_process(pid: int) -> str:
    try:
        return f"{Path(f'/proc/{pid}/comm').read_text().strip()} (process {pid})"
    except OSError:
        return f"process {pid}"


def check_protections(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Look for what cells of strangers should have, as the agent does at its start."""
    settings = setup.settings
    has_strangers = setup.serves_hub or settings.isolation == "unix-user"
    for word, problem, remedy in _find_missing(settings.require, has_strangers=has_strangers):
        is_required = word in settings.require
        yield Diagnosis(
            check=word,
            what=f"Cells of this node cannot have the protection {word!r}: {problem}.",
            why="Pool.require lists it, and the agent does not start without."
            if is_required
            else "What it keeps apart, docs/explanation/trust.md says; `bulletin status` warns of it.",
            remedy=remedy,
            level="wrong" if is_required else "advice",
        )


def _find_missing(require: tuple[str, ...], *, has_strangers: bool) -> Iterator[tuple[str, str, str]]:
    if (has_strangers or "namespaces" in require) and (problem := find_namespace_problem()):
        yield "namespaces", problem, "Run the agent as root with CAP_SYS_ADMIN, as deploy/systemd does."
    if (has_strangers or "memory-limit" in require) and (problem := _find_cgroup_problem()):
        yield (
            "memory-limit",
            problem,
            "Give the pool a unit of its own with Delegate=yes, as deploy/systemd does; the host needs cgroups v2.",
        )


def _find_cgroup_problem() -> str:
    """Say why the agent could not divide its part of the tree of cgroups; nothing is changed by it.

    With systemd that is what the agent's unit may, wherever this process is; without, this process is where it will be.
    """
    if _SYSTEMD.exists():
        return "" if _systemd_delegates() else f"the unit {_UNIT} has no Delegate=yes"
    try:
        base = find_base()
        controllers = (base / "cgroup.controllers").read_text().split()
    except (LookupError, OSError) as error:
        return str(error)
    return "" if "memory" in controllers else f"{base} has no controller of memory"


def _systemd_delegates() -> bool:
    """Whether the agent's unit may divide its cgroup; also true where there is no such unit: nobody can say."""
    words = ["systemctl", "show", "--property=LoadState,Delegate", _UNIT]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return True
    return "LoadState=loaded" not in said or "Delegate=yes" in said
