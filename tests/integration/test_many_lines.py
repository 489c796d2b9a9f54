"""A cell that prints more than anybody reads: the order is kept, memory is not used up, and stop is heard."""

import psutil

from tests.integration.conftest import Notebook


def test_a_million_lines_arrive_in_order_without_filling_memory(notebook: Notebook) -> None:
    process = psutil.Process(notebook.manager.provisioner.process.pid)  # type: ignore[union-attr]
    before = process.memory_info().rss
    peak, lines, rest = [before], [0], [""]

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

    output = notebook.collect(notebook.start("%%gpu\nfor i in range(1_000_000): print(i, 'x' * 80)"), look)
    assert output.error is None
    assert (lines[0], rest[0]) == (1_000_000, "")
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
