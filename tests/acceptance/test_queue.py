"""Two people and one slot, and one who may not: what each of them reads in the cell."""

from tests.acceptance.hub import Hub
from tests.acceptance.notebook import Kernel


def test_who_must_wait_reads_place_and_reason_in_the_cell_and_then_gets_the_result(hub: Hub) -> None:
    for user in ("ada", "bob"):
        hub.start_server(user)
    with Kernel(hub, "ada") as ada, Kernel(hub, "bob") as bob:
        gate = str(hub.folder / "gate")
        first = ada.send(
            "%%gpu\nimport os, time\nprint('ada runs')\n"
            f"while not os.path.exists({gate!r}):\n    time.sleep(0.05)\nanswer = 41 + 1"
        )
        first.wait(lambda run: "ada runs" in run.text)
        second = bob.send("x = 6")
        second.wait()
        second = bob.send("%%gpu\ny = x * 7\nprint('bob runs')")
        second.wait(lambda run: "1st in line" in run.text)
        assert "busy" in second.text
        assert "bob runs" not in second.text
        (hub.folder / "gate").touch()
        assert first.wait().error is None
        assert second.wait().error is None
        assert ada.run("print(answer)") == "42\n"
        assert bob.run("print(y)") == "42\n"


def test_who_may_not_use_the_pool_reads_one_plain_sentence(hub: Hub) -> None:
    hub.start_server("carol")
    with Kernel(hub, "carol") as carol:
        carol.run("x = 1")
        run = carol.send("%%gpu\nx = 2").wait()
        assert run.error is not None
        assert "no access to the GPU pool" in run.error
        assert "Traceback" not in run.error
        assert run.error.count("\n") == 0
        assert carol.run("print(x)") == "1\n"
