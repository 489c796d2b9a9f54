"""A cell that prints more than anybody reads: the order is kept, memory is not used up, and stop is heard."""

import psutil

from tests.integration.conftest import Notebook

#: After so many lines the cell waits until they have been read: what lies in the kernel's socket for a page that reads
#: slowly is Jupyter's, has no limit, and depends on how busy the machine is.
READ = 100_000
LINES = f"""%%gpu
for i in range(1_000_000):
    print(i, 'x' * 80)
    if i % {READ} == {READ - 1}:
        input()"""


def test_a_million_lines_arrive_in_order_without_filling_memory(notebook: Notebook) -> None:
    notebook.run("%%gpu\nprint('what a first cell takes is not counted')")
    process = psutil.Process(notebook.manager.provisioner.process.pid)  # type: ignore[union-attr]
    before = process.memory_info().rss
    peak, lines, rest, answered = [before], [0], [""], [0]

    def look(message: dict[str, object]) -> None:
        if message["msg_type"] != "stream":
            return
        text = rest[0] + message["content"]["text"]  # type: ignore[index]
        *whole, rest[0] = text.split("\n")
        for line in whole:
            assert line == f"{lines[0]} {'x' * 80}"
            lines[0] += 1
        peak[0] = max(peak[0], process.memory_info().rss)
        message["content"] = {"name": "stdout", "text": ""}
        if lines[0] == READ * (answered[0] + 1):
            answered[0] += 1
            notebook.answer("")

    output = notebook.collect(notebook.start(LINES), look)
    assert output.error is None
    assert (lines[0], rest[0]) == (1_000_000, "")
    # IPython keeps all that a cell prints, wherever the cell runs: 85 MB of these are its own.
    assert peak[0] - before < 150 * 2**20, f"{(peak[0] - before) / 2**20:.0f} MB"


def test_a_cell_that_prints_for_ever_is_stopped(notebook: Notebook) -> None:
    count = [0]

    def look(_message: dict[str, object]) -> None:
        count[0] += 1
        if count[0] == 200:
            notebook.interrupt()

    output = notebook.collect(notebook.start("%%gpu\nimport itertools\nfor i in itertools.count(): print(i)"), look)
    assert output.error is not None
    assert output.error["ename"] == "KeyboardInterrupt"
    numbers = output.stream().split()
    assert numbers == [str(number) for number in range(len(numbers))]
    assert notebook.run("%%gpu\nprint('next')").stream() == "next\n"
