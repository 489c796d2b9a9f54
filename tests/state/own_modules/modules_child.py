"""The executor of the tests of modules: another folder, none of the notebook's files on its path."""

import contextlib
import io
import linecache
import os
import pickle
import struct
import sys
import traceback
import types
from typing import Any

from bulletin.state import modules
from bulletin.state.modules import sources
from tests.state.notebook import run_cell


def start_anew(before: tuple[set[str], list[Any], list[str]]) -> modules.ExecutorModules:
    """As a fresh process would be."""
    names, finders, path = before
    for name in set(sys.modules) - names:
        if sources.location_of(name, sources.spec_in(sys.modules[name])) is not None:
            del sys.modules[name]
    sys.meta_path[:], sys.path[:] = finders, path
    linecache.clearcache()
    sys.modules["__main__"] = types.ModuleType("__main__")
    return modules.ExecutorModules()


def run(executor: modules.ExecutorModules, shipment: modules.Shipment, values: bytes, source: str) -> dict[str, Any]:
    """One cell; what it prints, returns or raises is in the answer."""
    printed = io.StringIO()
    error, result = "", None
    namespace = sys.modules["__main__"].__dict__
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        reloaded = executor.settle(shipment)
        namespace.update(pickle.loads(values))
        before = executor.snapshot()
        try:
            result = run_cell(source, namespace, "<cell>")
        except Exception:  # noqa: BLE001  it is the cell's, and told to the test
            error = traceback.format_exc()
        changes = executor.changed_since(before)
    answer = {"reloaded": reloaded, "error": error, "printed": printed.getvalue(), "changes": changes}
    return {**answer, "result": pickle.dumps(result)}


def main() -> None:
    """Until the input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    before = set(sys.modules), list(sys.meta_path), list(sys.path)
    executor = start_anew(before)
    while head := requests.read(8):
        request = pickle.loads(requests.read(struct.unpack("<Q", head)[0]))
        if request:
            answer = run(executor, *request)
        else:
            executor, answer = start_anew(before), {}
        body = pickle.dumps(answer)
        answers.write(struct.pack("<Q", len(body)) + body)
        answers.flush()


main()
