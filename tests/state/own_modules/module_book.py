"""A notebook with modules of its own, and an executor that sees none of its files."""

import importlib.util
import pickle
import struct
import subprocess
import sys
import types
from pathlib import Path
from textwrap import dedent
from typing import Any

from bulletin.state import modules
from tests.state.notebook import ROOT, run_cell


class Executor:
    """A process in a folder of its own that sees none of the notebook's files."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, str(Path(__file__).with_name("modules_child.py"))]
        self.folder = folder
        self.known = modules.Known()
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env={"PYTHONPATH": str(ROOT)}
        )

    def start_anew(self) -> None:
        self.known = modules.Known()
        self.ask()

    def ask(self, *request: Any) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        body = pickle.dumps(request)
        self._child.stdin.write(struct.pack("<Q", len(body)) + body)
        self._child.stdin.flush()
        (size,) = struct.unpack("<Q", self._child.stdout.read(8))
        answer: dict[str, Any] = pickle.loads(self._child.stdout.read(size))
        return answer

    def close(self) -> None:
        with self._child:  # closes both ends and waits
            pass


class Book:
    """A notebook in `folder`: cells run here (`local`), or in the executor (`gpu`)."""

    def __init__(self, folder: Path, executor: Executor) -> None:
        self.folder, self.executor = folder, executor
        self.modules = modules.NotebookModules()
        self.ns: dict[str, Any] = types.ModuleType("__main__").__dict__
        self.answer: dict[str, Any] = {}
        self.shipment: modules.Shipment | None = None
        self.failed: dict[str, BaseException] = {}
        self.is_shared = False  # whether the executor sees the files too
        self.modules.observe()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        importlib.invalidate_caches()
        return path

    def local(self, source: str) -> Any:
        try:
            return run_cell(dedent(source), self.ns, "<local>")
        finally:
            self.modules.observe()

    def gpu(self, source: str, **values: Any) -> Any:
        """The result of the cell, in the executor; `values` are what the cell finds in its namespace."""
        source = dedent(source)
        executor = self.executor
        self.shipment, known = self.modules.out(modules.imports_of_cell(source), executor.known)
        away = self.folder if self.is_shared else self.folder.with_name("away")
        self.folder.rename(away)
        answer = self.answer = executor.ask(self.shipment, pickle.dumps(values), source)
        away.rename(self.folder)
        self.failed = self.modules.follow(answer["changes"])
        result = pickle.loads(answer["result"])
        executor.known = self.modules.apply(answer["changes"], known)
        if answer["error"]:
            raise RuntimeError(answer["error"])
        return result
