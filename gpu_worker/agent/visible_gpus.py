"""Which of a host's GPUs are an agent's: in a job of a cluster, those that CUDA_VISIBLE_DEVICES names."""

from collections.abc import Sequence
from typing import NamedTuple


class FoundGpu(NamedTuple):
    """A GPU as NVML lists it, with the UUIDs of its slices."""

    uuid: str
    slices: tuple[str, ...]
    minor: int | None  #: as its device node is numbered; None where the driver does not tell


def select_gpus(visible: str | None, found: Sequence[FoundGpu]) -> list[tuple[int, tuple[str, ...] | None]]:
    """Select the agent's GPUs: their places in `found`, each with the slices that are its (None: all of it).

    `visible` is the value of CUDA_VISIBLE_DEVICES; None is not set, and selects all. Its numbers are those of device
    nodes, as clusters write them. Where a cluster hides the GPUs of others, it counts anew from 0 in each job: as many
    numbers as there are GPUs are all of them.
    """
    if visible is None:
        return [(place, None) for place in range(len(found))]
    words = [word.strip() for word in visible.split(",") if word.strip()]
    numbers = [int(word) for word in words if word.isdecimal()]
    chosen: list[tuple[int, tuple[str, ...] | None]] = []
    for place, gpu in enumerate(found):
        number = place if gpu.minor is None else gpu.minor
        slices = tuple(one for one in gpu.slices if any(_names(word, one) for word in words))
        if any(_names(word, gpu.uuid) for word in words) or number in numbers or len(numbers) == len(found):
            chosen.append((place, None))
        elif slices:
            chosen.append((place, slices))
    return chosen


def _names(word: str, uuid: str) -> bool:
    """Tell whether a word names a GPU or slice: by its UUID, or the beginning of it, as CUDA reads that."""
    return word.startswith(("GPU-", "MIG-")) and uuid.startswith(word)
