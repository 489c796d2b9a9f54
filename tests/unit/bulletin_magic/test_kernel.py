"""The magics in a real kernel, where there is no pool: one clear line, and the kernel lives on."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from tests.kernels import make_manager

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingKernelClient]:
    folder = tmp_path_factory.mktemp("kernel")
    environ = os.environ | {
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(folder),
        "BULLETIN_CONNECTION_FILE": str(folder / "nowhere.json"),
    }
    manager = make_manager()
    manager.start_kernel(env=environ)
    client: BlockingKernelClient = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    startup = ROOT / "bulletin_magic" / "startup.py"
    assert run(client, f"exec(open({str(startup)!r}).read())") == []
    yield client
    client.stop_channels()
    manager.shutdown_kernel()


def run(client: BlockingKernelClient, code: str) -> list[dict[str, Any]]:
    """What the cell shows: the contents of its messages, each with its type."""
    shown: list[dict[str, Any]] = []

    def take(message: dict[str, Any]) -> None:
        if message["msg_type"] not in {"status", "execute_input"}:
            shown.append({"type": message["msg_type"], **message["content"]})

    client.execute_interactive(code, timeout=120, output_hook=take)
    return shown


def test_without_a_pool_there_is_one_clear_line_and_the_kernel_lives_on(kernel: BlockingKernelClient) -> None:
    run(kernel, "x = 1")
    (shown,) = run(kernel, "%%gpu\nx = 2")
    assert (shown["type"], shown["ename"]) == ("error", "NoPool")
    assert shown["traceback"] == [f"NoPool: {shown['evalue']}"]
    assert "nowhere.json does not exist. Nothing was run; your variables are unchanged." in shown["evalue"]
    (shown,) = run(kernel, "x")
    assert shown["data"]["text/plain"] == "1"


def test_an_option_that_is_not_known_is_one_clear_line(kernel: BlockingKernelClient) -> None:
    (shown,) = run(kernel, "%%gpu --many\nx = 2")
    assert shown["ename"] == "BadOption"
    assert len(shown["traceback"]) == 1
    (shown,) = run(kernel, "%gpu dance")
    assert shown["ename"] == "BadOption"


@pytest.mark.parametrize("text", ["x" * 100_000, "{'x' * 100_000}"])
@pytest.mark.parametrize("line", ["%%gpu --label", "%%remote --label", "%gpu on --label"])
def test_a_line_of_100_kb_is_refused_at_once(line: str, text: str, kernel: BlockingKernelClient) -> None:
    """IPython alone would take more than a minute for it."""
    (shown,) = run(kernel, f"{line} {text}\n1")
    assert shown["ename"] == "BadOption"
    magic = line.split(maxsplit=1)[0]
    assert f"characters cannot stand beside {magic}; 10,000 fit." in shown["evalue"]
    assert len(shown["evalue"]) < 300


def test_variables_stand_in_the_line_of_a_magic(kernel: BlockingKernelClient) -> None:
    run(kernel, "number, twice = 7, 'none'")
    for line in ("%%gpu --gpus $twice", "%%gpu --gpus {twice}", "%%remote --cpus {twice}", "%gpu on --gpus {twice}"):
        (shown,) = run(kernel, f"{line}\n1")
        assert "'none' is not a whole number" in shown["evalue"]
    (shown,) = run(kernel, "def ask(word):\n    %gpu on --gpus {word}\nask('local')")
    assert "'local' is not a whole number" in shown["evalue"]


def test_what_cannot_be_sent_is_said_before_a_pool_is_looked_for(kernel: BlockingKernelClient) -> None:
    run(kernel, "import threading; lock = threading.RLock(); lock.acquire()")
    (shown,) = run(kernel, "%%gpu\nlock")
    assert shown["ename"] == "CannotSend"
    assert len(shown["traceback"]) == 1


def test_an_empty_cell_runs_nothing_and_says_so(kernel: BlockingKernelClient) -> None:
    (shown,) = run(kernel, "%%gpu\n   \n")
    assert "nothing was run" in shown["data"]["text/plain"]


@pytest.mark.parametrize("cell", ["%%gpu", "%%gpu\n", "%%remote --cpus 2"])
def test_a_lone_line_is_an_empty_cell(cell: str, kernel: BlockingKernelClient) -> None:
    (shown,) = run(kernel, cell)
    assert "nothing was run" in shown["data"]["text/plain"]


@pytest.mark.parametrize("cell", ["%%gpu --help", "%%remote --help\n1 / 0", "%%gpu -h\n1 / 0"])
def test_help_shows_the_options_and_runs_nothing(cell: str, kernel: BlockingKernelClient) -> None:
    (shown,) = run(kernel, cell)
    assert shown["text"].startswith("Run this cell on a GPU of the pool")
    assert "--gpu-memory" in shown["text"]


def test_the_help_shows_the_options() -> None:
    from bulletin_magic.commands.magics import BulletinMagics
    from bulletin_magic.commands.options import RESOURCE_OPTIONS

    assert all(option in (BulletinMagics.cell.__doc__ or "") for option in RESOURCE_OPTIONS)


def test_a_forked_child_does_not_use_the_pool(kernel: BlockingKernelClient) -> None:
    code = """
import os
reader, writer = os.pipe()
if (child := os.fork()) == 0:
    try:
        get_ipython().run_cell_magic("gpu", "", "1")
    except BaseException as error:
        os.write(writer, str(error).encode())
    finally:
        os._exit(0)
os.waitpid(child, 0)
os.read(reader, 1000).decode()
"""
    shown = run(kernel, code)
    assert "forked" in shown[-1]["data"]["text/plain"]


def test_unloading_takes_the_magics_away_and_loading_brings_them_back(kernel: BlockingKernelClient) -> None:
    assert run(kernel, "%unload_ext bulletin_magic") == []
    shown = run(kernel, "%%gpu\n1")
    assert "not found" in shown[0].get("text", "") + shown[0].get("evalue", "")
    assert run(kernel, "%load_ext bulletin_magic") == []
    (shown_again,) = run(kernel, "%%gpu\n1")
    assert shown_again["ename"] == "NoPool"
