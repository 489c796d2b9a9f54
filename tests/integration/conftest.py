"""A real pool and real notebooks: processes and sockets, nothing pretended."""

import queue
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
import zmq

from bulletin import __version__
from bulletin.wire import channel, frames, keys, messages as wire
from tests.clean_environ import clean_environ
from tests.kernels import make_manager
from tests.waiting import PATIENCE_S, until


class Client:
    """A plain client of the broker, as a kernel's link is one."""

    def __init__(self, connection: keys.Connection) -> None:
        self.context = zmq.Context()
        self.socket = channel.connect(
            self.context.socket(zmq.DEALER), connection.address, connection.public_key, channel.CONTROL_LIMIT
        )
        self.unpacker: frames.Unpacker[wire.ToKernel] = frames.Unpacker(wire.ToKernel)

    def send(self, message: wire.Message) -> None:
        self.socket.send_multipart(frames.pack(message))

    def receive(self, patience_s: float = PATIENCE_S) -> wire.ToKernel:
        assert self.socket.poll(patience_s * 1000), "the broker does not answer"
        return self.unpacker.unpack(self.socket.recv_multipart())[0]

    def hello(self, token: str, kernel: str = "test") -> wire.ToKernel:
        self.send(wire.Hello(protocol=wire.PROTOCOL, version=__version__, token=token, kernel=kernel))  # type: ignore[arg-type]
        return self.receive()

    def close(self) -> None:
        self.context.destroy(linger=0)


#: What a killed notebook has not taken, and a cell that runs, are not waited for when a test is over.
LEAVES_SOON = "--Pool.leave_grace=1"


def in_tests(options: Sequence[str]) -> list[str]:
    """Options of a pool or an agent, with those of the tests where it has no others."""
    chosen = [option.partition("=")[0] for option in options]
    return [*options, *([] if "--Pool.leave_grace" in chosen else [LEAVES_SOON])]


class PoolProcess:
    """`bulletin pool` in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        device: str = "cpu",
        hub: Mapping[str, str] | None = None,
        under: Sequence[str] = (),
    ) -> None:
        """Start it, with the environment of a hub that manages it, if one does, by the command `under` if given."""
        self.folder = folder
        self.log = (folder.parent / f"{folder.name}.log").open("ab")
        options = in_tests(["--device", device, *arguments])
        if "--isolation" not in arguments:
            options += ["--isolation", "shared"]
        self.process = subprocess.Popen(
            [*under, sys.executable, "-m", "gpu_worker.cli", "pool", "--folder", str(folder), *options],
            stdout=self.log,
            stderr=self.log,
            stdin=subprocess.DEVNULL,
            env=clean_environ() | dict(hub or {}),
        )
        try:
            until(lambda: (folder / "connection.json").exists(), f"the pool to start; see {self.log.name}")
            until(lambda: self.picture().slots, "the agent to register")
        except BaseException:
            self.stop()
            raise

    @property
    def connection(self) -> keys.Connection:
        return keys.read_private(self.folder / "connection.json", keys.Connection)

    def picture(self) -> wire.Picture:
        client = Client(self.connection)
        try:
            welcome = client.hello(self.connection.token, kernel="picture")
            assert isinstance(welcome, wire.Welcome)
            client.send(wire.Look())
            while not isinstance(picture := client.receive(), wire.Picture):
                pass  # welcomed once more: the first agent has come
            return picture
        finally:
            client.close()

    def part(self, name: str) -> psutil.Process:
        """The process of the broker, the agent, the zygote or the only executor."""

        def find() -> psutil.Process | None:
            for child in psutil.Process(self.process.pid).children(recursive=True):
                try:
                    if name in ("broker", "agent") and name in child.cmdline():
                        return child
                    if name == "executor" and all(
                        "gpu_worker.executor" in p.cmdline() for p in (child, child.parent())
                    ):
                        return child
                    if name == "zygote" and "gpu_worker.executor" in child.cmdline():
                        return child
                except psutil.Error:
                    continue
            return None

        found: psutil.Process = until(find, f"a process of the {name}")
        return found

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.log.close()


class Output(msgspec.Struct):
    """What one execution showed."""

    messages: list[dict[str, Any]]
    reply: dict[str, Any]

    def stream(self, name: str = "stdout") -> str:
        return "".join(
            m["content"]["text"] for m in self.messages if m["msg_type"] == "stream" and m["content"]["name"] == name
        )

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [m["content"] for m in self.messages if m["msg_type"] == kind]

    @property
    def own(self) -> list[dict[str, Any]]:
        """The cell's own messages: without Bulletin's notes, which come when a cell or its wait takes long."""
        return [m for m in self.messages if "role=" not in str(m["content"].get("data", {}).get("text/html"))]

    @property
    def result(self) -> str | None:
        results = self.of("execute_result")
        return results[-1]["data"]["text/plain"] if results else None

    @property
    def error(self) -> dict[str, Any] | None:
        errors = self.of("error")
        return errors[-1] if errors else None

    @property
    def shown(self) -> str:
        """Everything that a person could read, in order."""
        parts = []
        for message in self.messages:
            content = message["content"]
            if message["msg_type"] == "stream":
                parts.append(content["text"])
            elif "data" in content:
                parts.append(str(content["data"].get("text/plain", "")))
            elif message["msg_type"] == "error":
                parts.append("\n".join(content["traceback"]))
        return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(parts))


class Notebook:
    """A real ipykernel with the magics loaded."""

    first_cell = "%load_ext bulletin_magic"
    is_interrupted = False  #: since a reply came last

    def __init__(self, environ: dict[str, str], folder: Path, under: Sequence[str] = ()) -> None:
        """Start it with these variables, in this folder, by the command `under` if given."""
        self.manager = make_manager(kernel_name="python3")
        if under:
            argv = self.manager.kernel_spec.argv
            argv[:] = [*under, sys.executable, *argv[1:]]
        self.manager.start_kernel(env=clean_environ() | environ, cwd=str(folder), stderr=subprocess.DEVNULL)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE_S)
        loaded = self.run(self.first_cell)
        assert loaded.reply["status"] == "ok", loaded.shown

    def start(self, code: str) -> str:
        """Ask for an execution; its message id."""
        self.client.allow_stdin = True
        return str(self.client.execute(code, allow_stdin=True))

    def start_until(self, code: str, shows: str) -> str:
        """Ask for an execution and wait until it has shown the text; its message id."""
        message_id = self.start(code)
        self.wait_until(shows)
        return message_id

    def wait_until(self, shows: str) -> None:
        """Wait until something that runs has shown the text."""
        seen = ""
        while shows not in seen:
            try:
                seen += Output([self.client.get_iopub_msg(timeout=PATIENCE_S)], {}).shown
            except queue.Empty:
                raise AssertionError(f"{shows!r} was never shown:\n{seen}") from None

    def collect(self, message_id: str, on: Callable[[dict[str, Any]], None] | None = None) -> Output:
        """Wait for the execution to end. `on` sees each message as it comes."""
        messages: list[dict[str, Any]] = []
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE_S)
            if message["parent_header"].get("msg_id") != message_id:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            messages.append(message)
            if on is not None:
                on(message)
        # An interrupt that comes while ipykernel sends the reply of a cell that is over costs that reply, as anywhere:
        # who interrupted asks something else as well, which is answered after it.
        next_id = self.client.kernel_info() if self.is_interrupted else None
        self.is_interrupted = False
        content = None
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE_S)
            if reply["parent_header"].get("msg_id") == message_id:
                content = reply["content"]
            if reply["parent_header"].get("msg_id") == (next_id or message_id):
                return Output(messages, content or {"status": "aborted"})

    def run(self, code: str) -> Output:
        return self.collect(self.start(code))

    def run_until(self, code: str, shows: str, then: Callable[[], None]) -> Output:
        """Run; when the text has been shown, do `then`, once."""
        done: list[bool] = []
        seen: list[str] = []

        def look(message: dict[str, Any]) -> None:
            seen.append(Output([message], {}).shown)
            if shows in "".join(seen) and not done:
                done.append(True)
                then()

        output = self.collect(self.start(code), look)
        assert done, f"{shows!r} was never shown:\n{output.shown}"
        return output

    def value(self, expression: str) -> str:
        """The repr of an expression in the notebook."""
        output = self.run(expression)
        assert output.result is not None, output.shown
        return output.result

    def interrupt(self) -> None:
        self.is_interrupted = True
        self.manager.interrupt_kernel()

    def answer(self, text: str) -> None:
        """Type into the input() of the cell that runs."""
        try:
            self.client.get_stdin_msg(timeout=PATIENCE_S)
        except queue.Empty:
            raise AssertionError("the cell did not ask for input") from None
        self.client.input(text)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolProcess]:
    """A pool of two CPU slots, shared by the tests of a file."""
    process = PoolProcess(tmp_path_factory.mktemp("pool") / "p", "--slots", "2")
    yield process
    process.stop()


@pytest.fixture
def start_pool(tmp_path: Path) -> Iterator[Callable[..., PoolProcess]]:
    """Start a pool of one's own. It imports few libraries ahead: cells that use others wait for them instead."""
    started: list[PoolProcess] = []

    def start(*arguments: str, device: str = "cpu") -> PoolProcess:
        started.append(PoolProcess(tmp_path / f"pool{len(started)}", "--Pool.preload=numpy", *arguments, device=device))
        return started[-1]

    yield start
    for process in started:
        process.stop()


@pytest.fixture
def open_notebook(tmp_path: Path) -> Iterator[Callable[..., Notebook]]:
    """Open a notebook on a pool."""
    opened: list[Notebook] = []

    def start(pool: PoolProcess | None = None, **environ: str) -> Notebook:
        if pool is not None:
            environ["BULLETIN_CONNECTION_FILE"] = str(pool.folder / "connection.json")
        opened.append(Notebook(environ, tmp_path))
        return opened[-1]

    yield start
    for notebook in opened:
        notebook.close()


@pytest.fixture(scope="module")
def notebook(pool: PoolProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """One notebook on the shared pool."""
    opened = Notebook({"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json")}, tmp_path_factory.mktemp("nb"))
    yield opened
    opened.close()
