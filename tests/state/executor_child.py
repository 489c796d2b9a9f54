"""The executor of the tests: reads cells from its standard input, answers on its standard output."""

import ast
import os
import pickle
import struct
import sys
import traceback
import types
from typing import Any

from bulletin import state
from tests.state.cell_output import CellOutput

#: A cell that begins so is also handed back whole.
FOR_ANOTHER = "# for another notebook"


def run_cell(source: str, namespace: dict[str, Any]) -> Any:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace) if last is not None else None


def main() -> None:
    """Until the input ends. What cells print is told in the answer."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    sys.stdout = printed = CellOutput()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    namespace, table = module.__dict__, state.Table()
    while head := requests.read(8):
        source, parts = pickle.loads(requests.read(struct.unpack("<Q", head)[0]))
        answer: dict[str, Any] = {}
        try:
            baseline = state.restore(parts, namespace, table)
            printed.take()  # of what loading printed
            extra: dict[str, object] = {}
            try:
                extra["result"] = run_cell(source, namespace)
            except BaseException as error:  # noqa: BLE001  it is the cell's, and travels
                extra["error"] = error
            out = printed.take()
            changed = state.changes(namespace, baseline, extra=extra)
            answer = {"parts": [bytearray(part) for part in changed.parts], "names": changed.names, "out": out}
            if source.startswith(FOR_ANOTHER):
                whole = state.whole(namespace, changed.touched, extra=extra)
                answer["whole"] = [bytearray(part) for part in whole.parts]
        except BaseException:  # noqa: BLE001  told to the test
            answer = {"failed": traceback.format_exc()}
        body = pickle.dumps(answer)
        answers.write(struct.pack("<Q", len(body)) + body)
        answers.flush()


main()
