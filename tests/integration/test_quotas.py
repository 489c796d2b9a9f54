"""A quota file in a living pool: what it says holds at once, and what is wrong in it changes nothing."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from gpu_worker.broker.ledger import Ledger
from tests.integration.conftest import Notebook, PoolProcess, until


def test_a_limit_holds_back_and_a_higher_one_holds_at_once(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text("[projects.default]\nlimit = 1\n")
    pool = start_pool("--slots", "2", f"--Pool.quota_file={file}")
    first, second = open_notebook(pool), open_notebook(pool)
    busy = first.start_until("%%gpu\nprint('started')\ninput()\nprint('over')", shows="started")

    def raise_the_limit() -> None:
        assert [one.reason for one in pool.picture().waiting] == [
            "project 'default' uses 1 of 1 CPU slot that it may use"
        ]
        file.write_text("[projects.default]\nlimit = none\n")
        until(lambda: "quotas.toml:2" in Path(pool.log.name).read_text(), "the broker to say what is wrong")
        assert len(pool.picture().waiting) == 1
        file.write_text("[projects.default]\nlimit = 2\n")

    output = second.run_until("%%gpu\nprint('mine')", shows="1 of 1 CPU slot", then=raise_the_limit)
    assert output.stream() == "mine\n"
    assert "limit of project 'default': 1 GPU -> 2 GPUs" in Path(pool.log.name).read_text()
    first.answer("go")
    assert "over" in first.collect(busy).stream()
    old = pool.part("broker").pid
    os.kill(old, signal.SIGKILL)
    until(lambda: pool.part("broker").pid != old and pool.picture().slots, "another broker")
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        changed, added = ledger.config_changes()
    assert (added.what, added.field, added.before, added.after) == ("project default", "", None, "limit 1 GPU")
    assert (changed.what, changed.field, changed.before, changed.after) == (
        "project default", "limit", "1 GPU", "2 GPUs",
    )  # fmt: skip
    assert changed.who == file.owner()
    assert changed.at_ms > added.at_ms


def test_a_cell_knows_whether_it_is_in_quota_or_borrowed(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text("[projects.default]\nguaranteed = 1\nlimit = 2\n")
    pool = start_pool("--slots", "2", f"--Pool.quota_file={file}")
    first, second = open_notebook(pool), open_notebook(pool)
    busy = first.start_until("%%gpu\nprint('started')\ninput()", shows="started")
    second.run("%%gpu\n1")
    panel = second.run("%gpu").shown
    assert "This notebook holds a CPU slot of" in panel
    assert ", borrowed: it goes back when its owner needs it." in panel
    assert "Your project 'default' uses " in panel
    assert ", has 1 CPU slot guaranteed and may use 2." in panel
    first.answer("go")
    first.collect(busy)
    assert ", in quota." in first.run("%gpu").shown


def test_class_hours_that_are_written_hold_at_once_and_the_panel_says_until_when(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text("[projects.default]\nweight = 2\n")
    pool = start_pool("--slots", "1", f"--Pool.quota_file={file}")
    notebook = open_notebook(pool)
    days = '"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"'
    hours = f'days = [{days}]\nfrom = "00:00"\nuntil = "24:00"\ntime_zone = "UTC"\nguaranteed = 1\n'
    file.write_text(f"[projects.default]\nborrow = false\n[projects.default.class_hours.always]\n{hours}")
    until(lambda: "class_hours of project 'default': none -> 'always'" in Path(pool.log.name).read_text(), "the hours")
    assert notebook.run("%%gpu\nprint('in class')").stream() == "in class\n"
    said = ", has 1 CPU slot guaranteed and may use 1; class hours until 24:00 UTC, for another "
    assert said in notebook.run("%gpu").shown


def test_a_cell_that_names_no_class_has_one_that_its_project_may_use(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text('[projects.default]\nqos = ["batch", "long"]\nwalltime = "1 h"\n')
    pool = start_pool("--slots", "1", f"--Pool.quota_file={file}")
    notebook = open_notebook(pool)
    assert notebook.run("%%gpu\nprint('by itself')").stream() == "by itself\n"
    until(lambda: [cell.qos for cell in pool.picture().recent] == ["batch"], "the cell in the ledger")
    refused = notebook.run("%%gpu --qos interactive\n1")
    assert refused.error is not None
    assert "project 'default' may not use QoS 'interactive'. Choose one of batch, long with" in refused.error["evalue"]
