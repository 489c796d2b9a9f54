"""A notebook in this process and an executor in another, joined by a pipe."""

import ast
import pickle
import struct
import subprocess
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bulletin import state

ROOT = Path(__file__).parents[2]


def run_cell(source: str, namespace: dict[str, Any], filename: str) -> Any:
    """Run a cell as IPython does; the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, filename, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), filename, "eval"), namespace) if last is not None else None


class Executor:
    """A child process that restores, runs and answers."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, str(Path(__file__).with_name("executor_child.py"))]
        environ = {"PYTHONPATH": str(ROOT), "PATH": "", **(environ or {})}
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environ)

    def ask(self, source: str, parts: Sequence[Any]) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        body = pickle.dumps((source, [bytearray(part) for part in parts]))
        self._child.stdin.write(struct.pack("<Q", len(body)) + body)
        self._child.stdin.flush()
        (size,) = struct.unpack("<Q", self._child.stdout.read(8))
        answer: dict[str, Any] = pickle.loads(self._child.stdout.read(size))
        return answer

    def close(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.stdout.close()
        self._child.wait()


class Notebook:
    """A namespace, and cells run here (`local`) or in the executor (`gpu`)."""

    def __init__(self, executor: Executor) -> None:
        self.module = types.ModuleType("__main__")
        self.ns: dict[str, Any] = self.module.__dict__
        self.executor = executor
        self.table = state.Table()
        self.captured: state.Captured | None = None
        self.answer: dict[str, Any] = {}

    def local(self, source: str) -> Any:
        return run_cell(source, self.ns, "<local>")

    def gpu(self, source: str) -> state.Applied:
        self.captured = captured = state.capture(self.ns, state.needs(source, self.ns), table=self.table)
        self.answer = answer = self.executor.ask(source, captured.parts)
        if "failed" in answer:
            self.table.clear()
            raise RuntimeError(answer["failed"])
        return state.apply(answer["parts"], self.ns, sent=captured)

    def __getitem__(self, name: str) -> Any:
        return self.ns[name]
