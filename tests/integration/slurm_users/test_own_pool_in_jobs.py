"""Users of a cluster have pools of their own: each in jobs of theirs, on their account, and nobody else is there."""

import json
import subprocess
import sys
from pathlib import Path

from bulletin.wire import keys
from tests.clean_environ import clean_environ
from tests.integration.conftest import PATIENCE_S
from tests.integration.engine_pools import EnginePool, kill, slurm_options
from tests.integration.slurm_cluster import Slurm
from tests.integration.slurm_users.accounts import UIDS

#: A notebook: its cells come as JSON, and what they print goes out as such.
NOTEBOOK = """
import json, sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3")
said = []
def note(message):
    content = message["content"]
    said.append(content.get("text") or content.get("data", {}).get("text/plain") or str(content.get("evalue", "")))
try:
    for cell in json.loads(sys.argv[1]):
        client.execute_interactive(cell, output_hook=note, timeout=100)
finally:
    client.stop_channels()
    manager.shutdown_kernel()
print(json.dumps(said))
"""
#: What one who is not the pool's user can read or change of these files.
REACHED = """
import json, os, sys
found = []
for path in json.loads(sys.argv[1]):
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try:
            os.close(os.open(path, flags))
            found.append(path)
        except OSError:
            pass
print(json.dumps(found))
"""


def as_user(slurm: Slurm, home: Path, name: str) -> list[str]:
    """Words before a program that is to run as a user, who has just logged in."""
    uid = str(UIDS[name])
    mine = [f"HOME={home / name}", f"USER={name}", f"LOGNAME={name}", "TMPDIR=/tmp"]
    become = ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "env", "-C", str(home / name), *mine]
    return [*slurm.under, *become]


def run_as(slurm: Slurm, home: Path, name: str, source: str, argument: object) -> list[str]:
    """What a program prints as JSON that a user runs."""
    words = [*as_user(slurm, home, name), sys.executable, "-c", source, json.dumps(argument)]
    environ = clean_environ() | slurm.environ
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, env=environ, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, list)
    return found


def test_a_users_own_pool_runs_in_jobs_of_theirs_on_their_account_and_nobody_else_reaches_it(
    slurm: Slurm, home: Path
) -> None:
    (home / "ann").chmod(0o755)  # as homes are on many clusters
    folder = home / "ann" / "pool"
    options = slurm_options("--SlurmAgents.account=ann-lab")
    pool = EnginePool(folder, *options, environ=slurm.environ, under=as_user(slurm, home, "ann"))
    try:
        asks = "import os\nprint('ran as', os.getuid(), os.environ['SLURM_JOB_ACCOUNT'])"
        cells = [f"%gpu connect {pool.connection_file}", f"%%gpu\n{asks}", "%%gpu\nprint('again')"]
        said = "\n".join(run_as(slurm, home, "ann", NOTEBOOK, cells))
        assert f"ran as {UIDS['ann']} ann-lab\n" in said
        assert "again\n" in said
        assert slurm.run("squeue", "-h", "-o", "%u %a") == "ann ann-lab"

        refused = "\n".join(run_as(slurm, home, "bob", NOTEBOOK, cells[:2]))
        assert "ran as" not in refused
        assert str(pool.connection_file) in refused
        files = [path for path in folder.rglob("*") if path.is_file() or path.is_socket()]
        of_job = [path for one in Path("/tmp").glob("bulletin-*") for path in (one, *one.rglob("*")) if is_ann(path)]
        assert any(path.name == "node.json" for path in of_job), "of the job, on its node"
        files += of_job
        assert keys.read_public(folder / "public.json").address
        reached = run_as(slurm, home, "bob", REACHED, sorted(map(str, files)))
        assert reached == [str(folder / "public.json")], "which has no secret: who comes with it is asked for a token"
    finally:
        pool.stop()
        kill(pool.agents())
    assert slurm.jobs("PENDING,RUNNING") == []


def is_ann(path: Path) -> bool:
    try:
        return path.stat().st_uid == UIDS["ann"]
    except FileNotFoundError:  # it ends
        return False
