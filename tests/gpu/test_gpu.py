"""The pool on real GPUs: which one a cell gets, what the ledger says of it, and that nothing of it stays behind.

Figures are told, never asserted: see docs/howto/gpu-suite.md.
"""

import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.gpu import card
from tests.integration.conftest import Notebook, Output, PoolProcess, until

if reason := card.why_not():
    pytest.skip(reason, allow_module_level=True)

pytestmark = pytest.mark.gpu
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed in this environment")

GIB = 2**30
#: More than a driver keeps on a GPU that nobody uses, less than any process that has touched CUDA.
RESIDUE_BYTES = 64 * 2**20
Figure = Callable[[str, float, str], None]

#: Leaves as much in torch's cache as it says, and nothing in the notebook.
HOLD = """%%gpu
import torch
torch.empty({gib} * 2**30, dtype=torch.uint8, device="cuda")
held = torch.cuda.memory_reserved()
"""


@pytest.fixture
def pool(start_pool: Callable[..., PoolProcess]) -> PoolProcess:
    """A pool on the machine's GPUs, its zygote warm."""
    started = start_pool(device="auto")
    until(lambda: "zygote warm" in Path(started.log.name).read_text(), "the zygote to have imported torch", 180)
    return started


@pytest.fixture
def open_cpu_notebook(open_notebook: Callable[..., Notebook], pool: PoolProcess) -> Callable[[], Notebook]:
    """Open a notebook that sees no GPU, as on a CPU node."""
    return lambda: open_notebook(pool, CUDA_VISIBLE_DEVICES="")


@pytest.fixture
def before() -> dict[str, int]:
    """What is in use on each GPU while nobody uses it."""
    idle = {}
    for one in card.cards():
        until(lambda one=one: not one.holders, f"{one.uuid} to be left by whoever uses it")
        idle[one.uuid] = one.used_bytes
    return idle


def ran(notebook: Notebook, code: str) -> Output:
    """Run code that must not fail."""
    output = notebook.run(code)
    assert output.error is None, output.shown
    return output


def elapsed_ms(notebook: Notebook, code: str) -> float:
    """How long the notebook waits for this code."""
    began = time.perf_counter()
    ran(notebook, code)
    return (time.perf_counter() - began) * 1000


def slot_of(pool: PoolProcess, state: str) -> str:
    """The first slot in this state, as soon as the broker knows of one."""
    found: list[str] = until(
        lambda: [one.slot for one in pool.picture().slots if one.state == state], f"a {state} slot"
    )
    return found[0]


def until_all(pool: PoolProcess, state: str) -> None:
    """Wait until every slot is in this state."""
    until(lambda: all(slot.state == state for slot in pool.picture().slots), f"all slots to be {state}")


def leave(notebook: Notebook) -> None:
    """End the notebook's kernel as its owner does."""
    notebook.manager.shutdown_kernel(now=False)


def test_the_pool_offers_each_gpu_by_uuid_with_the_name_and_memory_that_nvml_tells(pool: PoolProcess) -> None:
    picture = pool.picture()
    assert picture.slot_word == "GPU"
    assert sorted((slot.slot, slot.name, slot.memory_bytes) for slot in picture.slots) == sorted(
        one[:3] for one in card.cards()
    )


@needs_torch
def test_a_cell_runs_on_the_gpu_of_its_slot_and_the_notebook_has_none(
    pool: PoolProcess, open_cpu_notebook: Callable[[], Notebook]
) -> None:
    notebook = open_cpu_notebook()
    ran(
        notebook,
        "%%gpu\nimport os, torch\n"
        "uuid = str(torch.cuda.get_device_properties(0).uuid)\n"
        "count, visible = torch.cuda.device_count(), os.environ['CUDA_VISIBLE_DEVICES']",
    )
    slot = slot_of(pool, "hot")
    assert notebook.value("(count, visible)") == f"(1, {slot!r})"
    if slot.startswith("GPU-"):  # of a slice, CUDA tells the GPU that it is a part of
        assert notebook.value("uuid").strip("'").removeprefix("GPU-") == slot.removeprefix("GPU-")
    assert notebook.value("(torch.cuda.device_count(), torch.cuda.is_initialized())") == "(0, False)"


@needs_torch
def test_an_executor_is_forked_with_torch_imported_and_cuda_untouched(
    open_cpu_notebook: Callable[[], Notebook],
) -> None:
    notebook = open_cpu_notebook()
    ran(
        notebook,
        "%%gpu\nimport ctypes, sys\n"
        "imported = 'torch' in sys.modules\n"
        "answer = ctypes.CDLL('libcuda.so.1').cuDeviceGetCount(ctypes.byref(ctypes.c_int()))\n"
        "import torch\n"
        "state = torch.cuda.is_initialized(), torch.cuda.is_available(), torch.cuda._is_in_bad_fork()\n"
        "total = float(torch.ones(3, device='cuda').sum())",
    )
    not_initialized = 3  # what the driver answers before anybody has called cuInit
    assert notebook.value("(imported, answer, state, total)") == f"(True, {not_initialized}, (False, True, False), 3.0)"


@needs_torch
def test_tensors_come_back_to_the_cpu_with_their_values_and_shared_memory(
    open_cpu_notebook: Callable[[], Notebook],
) -> None:
    notebook = open_cpu_notebook()
    ran(notebook, "import torch\nx = torch.arange(6.0)")
    ran(
        notebook,
        "%%gpu\ny = x.cuda() * 2\nrow = y[2:4]\nmodel = torch.nn.Linear(6, 1).cuda()\n"
        "model(y).sum().backward()\non = y.device.type, next(model.parameters()).device.type",
    )
    assert notebook.value("on") == "('cuda', 'cuda')"
    assert notebook.value("(y.device.type, y.tolist())") == "('cpu', [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])"
    assert notebook.run("row.zero_()").error is None
    assert notebook.value("y.tolist()") == "[0.0, 2.0, 0.0, 0.0, 8.0, 10.0]"
    assert notebook.value("{(p.device.type, p.grad.device.type) for p in model.parameters()}") == "{('cpu', 'cpu')}"
    assert notebook.value("model.weight.grad.tolist()") == "[[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]]"


@needs_torch
def test_the_ledger_has_the_peak_memory_and_the_utilization_of_a_cell(
    pool: PoolProcess, open_cpu_notebook: Callable[[], Notebook], figure: Figure
) -> None:
    notebook = open_cpu_notebook()
    ran(
        notebook,
        "%%gpu\nimport time, torch\n"
        "def work(seconds):\n"
        "    held = torch.ones(2_000_000_000, dtype=torch.uint8, device='cuda')\n"
        "    a = torch.rand(4096, 4096, device='cuda')\n"
        "    until = time.monotonic() + seconds\n"
        "    while time.monotonic() < until:\n"
        "        a = torch.tanh(a @ a)\n"
        "        torch.cuda.synchronize()\n"
        "    return int(held[-1])\n"
        "one = work(4)",
    )
    cell = until(lambda: pool.picture().recent, "the ledger")[0]
    assert cell.outcome == "returned"
    assert 2_000_000_000 <= cell.peak_memory_bytes < 4_000_000_000
    assert 0 < cell.mean_utilization <= 1
    figure("peak memory of a cell that holds 2 GB", cell.peak_memory_bytes / 1e9, "GB")
    figure("mean utilization of a cell that multiplies matrices for 4 s", cell.mean_utilization, "of 1")


@needs_torch
def test_no_memory_is_in_use_after_the_notebook_has_left(
    before: dict[str, int], pool: PoolProcess, open_cpu_notebook: Callable[[], Notebook], figure: Figure
) -> None:
    notebook = open_cpu_notebook()
    ran(notebook, HOLD.format(gib=2))
    (gpu,) = [one for one in card.cards() if one.uuid == slot_of(pool, "hot")]
    assert gpu.used_bytes >= before[gpu.uuid] + 2 * GIB
    executor = pool.part("executor")
    leave(notebook)
    began = time.perf_counter()
    until_all(pool, "free")
    figure("from the end of a notebook to its GPU being free", (time.perf_counter() - began) * 1000, "ms")
    assert gpu.holders == []
    assert gpu.used_bytes < before[gpu.uuid] + RESIDUE_BYTES
    assert not executor.is_running()


@needs_torch
def test_one_who_waits_gets_the_gpu_of_a_hot_session_and_finds_it_empty(
    before: dict[str, int], pool: PoolProcess, open_cpu_notebook: Callable[[], Notebook], figure: Figure
) -> None:
    hot = [open_cpu_notebook() for _ in before]
    for notebook in hot:
        ran(notebook, HOLD.format(gib=4))
        assert int(notebook.value("held")) >= 4 * GIB
    until_all(pool, "hot")
    last = open_cpu_notebook()
    ran(last, "import torch")
    waited_ms = elapsed_ms(
        last,
        "%%gpu\nimport os\nfree, total = torch.cuda.mem_get_info()\ngpu = os.environ['CUDA_VISIBLE_DEVICES']",
    )
    figure("first torch cell of a notebook that takes a hot session's GPU", waited_ms, "ms")
    gpu = last.value("gpu").strip("'")
    used = int(last.value("total - free"))
    assert used < before[gpu] + 2 * GIB  # its own CUDA context, and nothing of the 4 GiB
    again = ran(hot[0], "%%gpu\nprint(held >= 4 * 2**30)")  # who had to go has lost no variable
    assert again.stream() == "True\n"


@needs_torch
def test_the_stop_button_stops_a_loop_on_the_gpu_and_the_session_stays(
    open_cpu_notebook: Callable[[], Notebook],
) -> None:
    notebook = open_cpu_notebook()
    ran(
        notebook,
        "import os\ndef forever():\n    a = torch.rand(2048, 2048, device='cuda')\n    print('started')\n"
        "    while True:\n        a = torch.tanh(a @ a)",
    )
    output = notebook.run_until(
        "%%gpu\nimport torch\nthere = os.getpid()\nforever()", shows="started", then=notebook.interrupt
    )
    assert output.error is not None
    assert output.error["ename"] == "KeyboardInterrupt", output.shown
    ran(notebook, "%%gpu\nsame = os.getpid() == there\ntotal = float(torch.ones(3, device='cuda').sum())")
    assert notebook.value("(same, total)") == "(True, 3.0)"


@needs_torch
def test_what_cells_cost(pool: PoolProcess, open_cpu_notebook: Callable[[], Notebook], figure: Figure) -> None:
    """Nobody else asks, so a lease is granted at once: a first cell pays for the fork and for CUDA, not for a wait."""
    empty, first = open_cpu_notebook(), open_cpu_notebook()
    for notebook in (empty, first):
        ran(notebook, "import torch")  # so that no time below is the notebook's own import
    figure("first cell of a session, empty", elapsed_ms(empty, "%%gpu\npass"), "ms")
    hot = statistics.median(elapsed_ms(empty, "%%gpu\npass") for _ in range(50))
    local = statistics.median(elapsed_ms(empty, "pass") for _ in range(50))
    leave(empty)
    until_all(pool, "free")
    torch_cell = "%%gpu\ntotal = float(torch.ones(1000, device='cuda').sum())"
    figure("first cell of a session, with torch on the GPU", elapsed_ms(first, torch_cell), "ms")
    assert first.value("total") == "1000.0"
    again = statistics.median(elapsed_ms(first, torch_cell) for _ in range(20))
    figure("hot cell with torch on the GPU, median of 20", again, "ms")
    figure("hot empty cell, median of 50", hot, "ms")
    figure("the same cell in the notebook, median of 50", local, "ms")
