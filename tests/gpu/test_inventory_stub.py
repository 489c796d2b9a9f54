"""What the agent makes of NVML: a library in its place has one GPU, which is as a text file says."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from gpu_worker.agent import inventory as inventory_module
from gpu_worker.agent.inventory import Inventory, SlotLoad
from gpu_worker.agent.slot_meter import SlotMeter
from tests.integration.conftest import Notebook, PoolProcess, until

if shutil.which("cc") is None:
    pytest.skip("no C compiler (cc) on PATH to build the stand-in for NVML with", allow_module_level=True)

GPU, SLICE = "GPU-5708ab1e-0000-4000-8000-000000000001", "MIG-5708ab1e-0000-4000-8000-000000000002"
MIB = 2**20


def say(*, mig: int = 0, processes: int = 0, each_mib: int = 0, device_mib: int = 0, busy: int = 0) -> None:
    """Put the GPU into this state, at once and as a whole."""
    place = Path(os.environ["NVML_STUB"])
    new = place.with_suffix(".new")
    new.write_text(f"{mig} {processes} {each_mib} {device_mib} {busy}")
    new.replace(place)


def times_asked() -> int:
    """How often somebody has looked at the processes of the GPU."""
    asked = Path(os.environ["NVML_STUB"] + ".asked")
    return asked.stat().st_size if asked.exists() else 0


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Processes that start from now on find the stand-in."""
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("nvml_stub.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-o", folder / "libnvidia-ml.so.1", source], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(folder), prepend=os.pathsep)
        patch.setenv("NVML_STUB", str(folder / "gpu"))
        yield


@pytest.fixture(autouse=True)
def gpu(library: None) -> None:
    """Each test begins with an idle GPU."""
    say()


@pytest.fixture(scope="module")
def there(library: None) -> Iterator[Callable[..., Any]]:
    """Call a function in a process that finds the stand-in. This one may have the real NVML already."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
        yield lambda function, *arguments: child.submit(function, *arguments).result()


def offers() -> list[tuple[str, str, str, int]]:
    return [(one.kind, one.slot, one.name, one.memory_bytes) for one in Inventory(2, use_gpus=True).offers]


def costs() -> list[int]:
    return [one.milli for one in Inventory(2, use_gpus=True).offers]


def nodes() -> tuple[str, ...]:
    inventory = Inventory(2, use_gpus=True)
    return inventory.device_nodes(tuple(offer.slot for offer in inventory.offers))


async def until_asked(count: int) -> None:
    """Wait until the processes have been looked at so often again. One sample looks once or twice."""
    enough = times_asked() + count
    await asyncio.to_thread(until, lambda: times_asked() >= enough, "somebody to look at the GPU")


def load_of(*states: dict[str, int]) -> tuple[int | None, float | None]:
    """Peak memory and mean utilization of a cell during which the GPU was in these states, for some samples each."""

    async def cell() -> SlotLoad:
        say(**states[0])
        inventory, load = Inventory(0, use_gpus=True), SlotLoad()
        watch = asyncio.create_task(inventory.watch(tuple(offer.slot for offer in inventory.offers), load))
        for state in states:
            say(**state)
            await until_asked(5)
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        return load

    load = asyncio.run(cell())
    return load.peak_memory_bytes, load.mean_utilization


def emptied(held: dict[str, int], then: dict[str, int] | None) -> bool:
    """Whether a GPU in the state `held` was found empty, which came into the state `then` while one waited."""
    inventory_module._EMPTY_TRIES = 4  # in this child alone

    async def leave() -> bool:
        inventory = Inventory(0, use_gpus=True)
        say(**held)
        async with asyncio.TaskGroup() as tasks:
            looked = tasks.create_task(until_asked(1))
            waiting = tasks.create_task(inventory.wait_empty(tuple(offer.slot for offer in inventory.offers)))
            await looked
            if then is not None:
                say(**then)
        return waiting.result()

    return asyncio.run(leave())


def told(*states: dict[str, int]) -> list[tuple[int, int, int]]:
    """What is told of the GPU a second after it has come into each of these states: busy, used, idle for so long."""

    async def look() -> list[tuple[int, int, int]]:
        say(**states[0])
        inventory, clock = Inventory(0, use_gpus=True), [0]
        meter, found = SlotMeter(inventory, lambda: clock[0]), []
        for state in states:
            say(**state)
            await meter.look()
            clock[0] += 1_000
            found += [(use.busy_percent, use.used_bytes, use.idle_ms) for use in meter.uses]
        return found

    return asyncio.run(look())


def test_what_a_gpu_does_is_told_and_for_how_long_it_does_nothing(there: Callable[..., Any]) -> None:
    busy, idle, slice_ = {"processes": 1, "each_mib": 9, "busy": 80}, {"processes": 1, "each_mib": 9}, {"mig": 1}
    assert there(told, busy, idle, idle, busy) == [
        (80, 9 * MIB, 0),
        (0, 9 * MIB, 1_000),
        (0, 9 * MIB, 2_000),
        (80, 9 * MIB, 0),
    ]
    assert there(told, busy, {"busy": -1}, busy) == [(80, 9 * MIB, 0)] * 2, "one that is lost is not told of"
    assert there(told, slice_) == [], "a slice has no counter of its own"


def test_a_gpu_is_offered_by_its_uuid_with_name_and_memory(there: Callable[..., Any]) -> None:
    assert there(offers) == [("gpu", GPU, "Stub GPU", 8 * 2**30)]


def test_a_gpu_that_is_lost_is_not_offered_and_ends_no_agent(there: Callable[..., Any]) -> None:
    say(busy=-1)
    assert there(offers) == [("cpu", f"cpu-{n}", "CPU slot", 0) for n in range(2)]


def test_of_a_gpu_with_mig_its_slices_are_offered_and_not_itself(there: Callable[..., Any]) -> None:
    say(mig=1)
    assert there(offers) == [("mig", SLICE, "Stub GPU MIG 1g.1gb", 2**30)]


def test_a_slice_costs_its_part_of_the_gpus_memory(there: Callable[..., Any]) -> None:
    assert there(costs) == [1000]
    say(mig=1)
    assert there(costs) == [125]


def test_a_cell_with_a_gpu_is_given_its_device_nodes_and_one_without_none(there: Callable[..., Any]) -> None:
    driver = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
    assert there(nodes) == (*driver, "/dev/nvidia3")
    say(busy=-1)
    assert there(nodes) == ()


def test_a_gpu_with_mig_and_no_slice_offers_nothing_that_cuda_could_not_use(there: Callable[..., Any]) -> None:
    say(mig=2)
    assert there(offers) == [("cpu", f"cpu-{n}", "CPU slot", 0) for n in range(2)]


def test_peak_memory_is_what_all_processes_held_at_most(there: Callable[..., Any]) -> None:
    small, large = {"processes": 1, "each_mib": 500}, {"processes": 2, "each_mib": 1500}
    assert there(load_of, small, large, small)[0] == 3000 * MIB


def test_where_the_driver_does_not_tell_by_process_all_that_is_in_use_counts(there: Callable[..., Any]) -> None:
    assert there(load_of, {"processes": 1, "each_mib": -1, "device_mib": 700})[0] == 700 * MIB


def test_utilization_is_a_mean_between_0_and_1(there: Callable[..., Any]) -> None:
    assert there(load_of, {"processes": 1, "each_mib": 500, "busy": 80})[1] == pytest.approx(0.8)
    mixed = there(load_of, {"processes": 1, "busy": 0}, {"processes": 1, "busy": 100})[1]
    assert 0 < mixed < 1


def test_a_slice_has_its_memory_counted(there: Callable[..., Any]) -> None:
    assert there(load_of, {"mig": 1, "processes": 1, "each_mib": 300})[0] == 300 * MIB


def test_a_gpu_that_does_not_answer_for_a_while_is_watched_on(there: Callable[..., Any]) -> None:
    alive, lost = {"processes": 1, "each_mib": 500, "busy": 60}, {"busy": -1}
    assert there(load_of, alive, lost, {**alive, "each_mib": 900}) == (900 * MIB, pytest.approx(0.6))


@pytest.mark.parametrize(
    ("held", "then", "is_empty"),
    [
        ({}, None, True),
        ({"processes": 1, "each_mib": 30}, None, True),
        ({"processes": 1, "each_mib": 4000}, {}, True),
        ({"processes": 1, "each_mib": 4000}, None, False),
        ({"processes": 1, "each_mib": -1, "device_mib": 4000}, None, False),
        ({"busy": -1}, None, False),
    ],
    ids=["idle", "a driver's residue", "released meanwhile", "kept", "kept by who knows whom", "a lost GPU"],
)
def test_a_slot_is_empty_when_no_process_holds_its_memory(
    there: Callable[..., Any], held: dict[str, int], then: dict[str, int] | None, is_empty: bool
) -> None:
    assert there(emptied, held, then) is is_empty


# --- the whole pool on it

#: A cell that puts the GPU to work, and goes on until it has been looked at a few times.
BUSY = """%%gpu
import os, pathlib
seen = os.environ["CUDA_VISIBLE_DEVICES"]
place = os.environ["NVML_STUB"]
pathlib.Path(place).write_text("0 1 2048 2048 50")
asked = pathlib.Path(place + ".asked")
enough = asked.stat().st_size + 5
while asked.stat().st_size < enough:
    pass
"""


def test_a_cell_is_told_its_gpu_by_uuid_and_the_ledger_has_what_it_did_to_it(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool(device="auto")
    (slot,) = pool.picture().slots
    assert (slot.slot, slot.name, slot.memory_bytes, pool.picture().slot_word) == (GPU, "Stub GPU", 8 * 2**30, "GPU")
    notebook = open_notebook(pool, CUDA_VISIBLE_DEVICES="")
    output = notebook.run(BUSY)
    assert output.error is None, output.shown
    assert notebook.value("(seen, os.environ['CUDA_VISIBLE_DEVICES'])") == f"('{GPU}', '')"
    cell = until(lambda: pool.picture().recent, "the ledger")[0]
    assert cell.peak_memory_bytes == 2048 * MIB
    assert 0 < cell.mean_utilization <= 0.5


def test_a_gpu_is_not_free_before_its_memory_is(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool(device="auto")
    notebook = open_notebook(pool)
    assert notebook.run("%%gpu\nprint(1)").error is None
    executor = pool.part("executor")
    say(processes=1, each_mib=4000)
    notebook.manager.shutdown_kernel(now=False)
    until(lambda: not executor.is_running(), "the executor to end")
    enough = times_asked() + 5
    until(lambda: times_asked() >= enough, "the agent to look at the GPU")
    assert [slot.state for slot in pool.picture().slots] != ["free"]
    say()
    until(lambda: [slot.state for slot in pool.picture().slots] == ["free"], "the slot to be free")
