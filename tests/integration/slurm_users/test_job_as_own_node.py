"""A job of a user's own as a node of a hub's pool, by the commands of docs/howto/slurm.md."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.units import HOUR_MS
from bulletin.wire import messages as wire
from tests.integration.conftest import until
from tests.integration.hub_pool import HubPool
from tests.integration.nodes import add
from tests.integration.slurm_cluster import Slurm
from tests.integration.slurm_users.accounts import UIDS

#: For tests: no GPU is there, and nothing large is imported first.
SMALL = "--device=cpu --slots=1 --Pool.preload='[]'"
WHERE = "%%gpu\nimport os\nprint(os.getuid(), os.environ.get('SLURM_JOB_ID'))"
#: It ends when the file is there.
WAITS = """%%gpu
import os, time
print('began in', os.environ.get('SLURM_JOB_ID'))
while not os.path.exists({gate!r}):
    time.sleep(0.02)
print('ended')
"""
PAGE = Path(__file__).parents[3] / "docs" / "howto" / "slurm.md"


def find_blocks() -> list[str]:
    """The blocks of code that the page gives for a job of one's own."""
    section = PAGE.read_text().partition("## A job of your own, in a hub's pool\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


@pytest.fixture
def pool(home: Path, slurm: Slurm) -> Iterator[HubPool]:
    (home / "hub").mkdir()
    pool = HubPool(home / "hub", 1)
    yield pool
    pool.stop()


class Ann:
    """The user, logged in where jobs are submitted."""

    def __init__(self, slurm: Slurm, home: Path) -> None:
        self._home, self._slurm = home / "ann", slurm
        uid = str(UIDS["ann"])
        mine = {"HOME": str(self._home), "USER": "ann", "PATH": os.environ["PATH"], **slurm.environ}
        become = ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "env", "-i", "-C", str(self._home)]
        self._words = [*become, *(f"{name}={value}" for name, value in mine.items())]

    def receive(self, file: Path) -> None:
        """Be given a file by an admin."""
        file.rename(self._home / "ada-box.node.json")
        os.chown(self._home / "ada-box.node.json", UIDS["ann"], UIDS["ann"])

    def run(self, script: str) -> str:
        """What a script of a shell prints."""
        return self._slurm.run(*self._words, "sh", "-ec", script)

    def submit(self, script: str, **words: str) -> str:
        """Submit the page's script, with words of it that are others here; the job."""
        program = shlex.join([sys.executable, "-P", "-s", "-m", "gpu_worker.cli"])
        here = {"/opt/notebooks/bin/bulletin": program, "partition=gpu": "partition=main"}
        for there, other in (here | words).items():
            assert there in script
            script = script.replace(there, other)
        (self._home / "box.sh").write_text(f"{script.rstrip()} {SMALL}\n")
        return self.run("sbatch --parsable box.sh")


def box(pool: HubPool) -> list[wire.SlotPicture]:
    """What ann's own node has in the pool."""
    return [slot for slot in pool.process.picture().slots if slot.owner == "ann"]


def test_a_job_of_ones_own_is_a_node_for_oneself_that_leaves_in_time_and_comes_again(
    slurm: Slurm, home: Path, pool: HubPool
) -> None:
    (_, place, script), user = find_blocks(), Ann(slurm, home)
    user.receive(add(pool.process, "ada-box", "../given", "--user=ann") / "node.json")
    user.run(place)
    job = user.submit(script)
    [slot] = until(lambda: box(pool), "the job's node")
    assert slot.drains_in_ms is not None, "it knows when its job ends"
    assert 3.9 * HOUR_MS < slot.drains_in_ms < 4 * HOUR_MS

    ann, bob = pool.open("ann", "maths"), pool.open("bob", "maths")
    assert ann.run(WHERE).stream() == f"{UIDS['ann']} {job}\n"
    assert bob.run(WHERE).stream() == f"{os.getuid()} None\n"
    bob.run("%gpu stop")
    assert ann.run(WHERE.replace("%%gpu", "%%gpu --qos batch --time 5h")).stream() == f"{os.getuid()} None\n"

    slurm.run("scontrol", "update", f"JobId={job}", "TimeLimit=480")
    until(lambda: [one for one in box(pool) if (one.drains_in_ms or 0) > 7 * HOUR_MS], "the job's new end to be known")
    ann.run("%gpu stop")
    assert ann.run(WHERE.replace("%%gpu", "%%gpu --qos batch --time 5h")).stream() == f"{UIDS['ann']} {job}\n"
    slurm.run("scontrol", "update", f"JobId={job}", "TimeLimit=UNLIMITED")
    until(lambda: [one for one in box(pool) if one.drains_in_ms is None], "it to be known that the job does not end")

    message = ann.start_until(WAITS.format(gate=str(home / "gate")), shows=f"began in {job}")
    slurm.run("scancel", job)
    ann.wait_until("The node of your cell is being shut down. Your cell has 25 s to end")
    (home / "gate").touch()
    assert "ended" in ann.collect(message).stream(), "as any other cell: Slurm's signal was for the agent"
    until(lambda: not box(pool) and not slurm.jobs(), "the job to be over")

    ann.run("%gpu stop")  # where it has been in the meantime
    job = user.submit(script, **{"leave_grace=25": "leave_grace=1"})
    until(lambda: box(pool), "the next job's node, with the same file")
    message = ann.start_until(WAITS.format(gate=str(home / "never")), shows=f"began in {job}")
    slurm.run("scancel", job)
    ann.wait_until("The cell is run again from its beginning")
    ann.wait_until("began in None")
    ann.interrupt()
    ann.collect(message)
