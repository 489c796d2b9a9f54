"""What no node of the pool was ever large enough for, and the sentence that says so: the first thing that lacks."""

from collections.abc import Collection

from bulletin.units import show_size
from gpu_worker.scheduler.accounts import Shape
from gpu_worker.scheduler.actions import NoSuchGpu, TooLarge, TooManyGpus
from gpu_worker.scheduler.resources import Kind, Offer


def never_there(
    gpus: int, gpu_type: str, shape: Shape, offers: Collection[Offer]
) -> TooManyGpus | NoSuchGpu | TooLarge | None:
    """Why none of these nodes could hold such a request; None if one could.

    `gpus` and `gpu_type` are as the person asked; `offers` are of the lane of the shape.
    """
    wants, on_cpu = shape.wants, shape.lane == "cpu"
    kind = wants.kind
    slots = [slot for offer in offers for slot, _ in offer.slots]
    of_type = [slot for slot in slots if Kind(kind.words, 0, kind.is_slice).serves(slot)]
    if slots and not of_type:
        return NoSuchGpu(gpu_type, tuple(sorted({slot.name for slot in slots})), on_cpu)
    most = max((slot.memory_bytes for slot in of_type), default=0)
    if slots and kind.memory_bytes > most:
        if on_cpu:
            return NoSuchGpu(gpu_type, (), on_cpu)
        return TooLarge("--gpu-memory", show_size(kind.memory_bytes), show_size(most), "GPU")
    largest = max((offer.count(kind) for offer in offers), default=0)
    if shape.need > largest:
        with_what = f" of type {gpu_type!r}" if gpu_type else ""
        with_what += f" with {show_size(kind.memory_bytes)}" if kind.memory_bytes else ""
        return TooManyGpus(gpus, largest, on_cpu, with_what)
    cpus = max((offer.cpus for offer in offers), default=0)
    if wants.cpus > cpus:
        return TooLarge("--cpus", _cpus(wants.cpus), _cpus(cpus))
    memory_bytes = max((offer.memory_bytes for offer in offers), default=0)
    if wants.memory_bytes > memory_bytes:
        return TooLarge("--memory", show_size(wants.memory_bytes), show_size(memory_bytes))
    if any(_holds(offer, shape) for offer in offers):
        return None
    return TooLarge("", "", "")


def _cpus(number: int) -> str:
    return "1 CPU" if number == 1 else f"{number} CPUs"


def _holds(offer: Offer, shape: Shape) -> bool:
    wants = shape.wants
    enough = wants.cpus <= offer.cpus and wants.memory_bytes <= offer.memory_bytes
    return enough and offer.count(wants.kind) >= shape.need
