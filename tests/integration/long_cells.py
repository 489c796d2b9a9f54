"""A long cell that a test may hold back, and what is left when it is over; all that a cell has shown."""

import os
import re
from pathlib import Path

from tests.integration.conftest import Notebook, Output, until

#: What the dead notebook had: the cell changes `box` and `table`, and binds a function that calls one of before.
BEFORE = """
marker, gate, stop = {marker!r}, {gate!r}, {stop}
box, table, untouched = [b''], {{'n': 1}}, 'here'
inner = table
def helper(x):
    return x + 1
"""
LONG = """%%gpu --label mine
import os, sys, time
print('started')
for i in range(300):
    while i == stop and not os.path.exists(gate): time.sleep(0.01)
    print(i, 'x' * 300)
    if i % 50 == 0:
        print('!', i, file=sys.stderr)
        display({'shown': i})
box[0] = bytes(range(256)) * 80_000
table['n'] += 1
def doubled(x):
    return 2 * helper(x)
both = [box, table]
open(marker, 'w').write('over')
len(box[0])
"""
VALUES = "len(box[0]), table, doubled(3), both[0] is box and both[1] is table, 'untouched' in dir()"


def listed(notebook: Notebook) -> str:
    output = notebook.run("%gpu attach")
    assert output.error is None, output.shown
    return output.stream()


def id_when(notebook: Notebook, state: str) -> str:
    """The name of the one cell that is listed, once it is in this state."""
    pattern = re.compile(r"^(\w{8}) \[mine\]  import os, sys, time  \(" + state, re.MULTILINE)
    found: re.Match[str] = until(lambda: pattern.search(listed(notebook)), f"a cell that is {state}")
    return found[1]


def start(notebook: Notebook, folder: Path, stop: int = 0) -> Path:
    """Run the cell until it has printed so many lines; the file that lets it go on."""
    gate, marker = folder / "gate", folder / "over"
    notebook.run(BEFORE.format(marker=str(marker), gate=str(gate), stop=stop))
    notebook.start_until(LONG, shows=f"{stop - 1} xxx" if stop else "started")
    return gate


#: Moments to cut at; `make.py soak` has more.
ROUNDS = int(os.environ.get("BULLETIN_SOAK", "3"))


def shown(output: Output) -> list[object]:
    """All that was shown, with what was printed in one piece between other things."""
    found: list[object] = []
    for message in output.own:
        content, kind = message["content"], message["msg_type"]
        if kind == "stream":
            if found and isinstance(found[-1], tuple) and found[-1][0] == content["name"]:
                found[-1] = (content["name"], found[-1][1] + content["text"])
            else:
                found.append((content["name"], content["text"]))
        elif kind in ("display_data", "execute_result"):
            found.append((kind, content["data"]))
    return found
