"""Who may not have the lock of an agent's folder reads whose it is, and what to do."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ENTER = """
import os, sys
from pathlib import Path
from bulletin.errors import BadConfig
from gpu_worker.agent.folder_lock import alone_in
folder, user = Path(sys.argv[1]), int(sys.argv[2])
os.chdir(folder)
os.setgid(user)
os.setuid(user)
try:
    with alone_in(folder):
        print("in")
except BadConfig as refused:
    print(refused)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root leaves files that others may not open")
@pytest.mark.parametrize(
    ("owner", "says"),
    [(65534, ("belongs to 'root'", "remove the file: rm ")), (0, ("cannot make a file in", "Give that folder"))],
)
def test_an_agent_of_another_account_than_the_last_reads_what_to_do(owner: int, says: tuple[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own no other user enters
        enter = [sys.executable, "-c", ENTER, folder]
        if owner:
            assert subprocess.run([*enter, "0"], capture_output=True, text=True, check=True).stdout == "in\n"
        Path(folder).chmod(0o755)
        os.chown(folder, owner, owner)
        refused = subprocess.run([*enter, "65534"], capture_output=True, text=True, check=True).stdout
        assert all(words in refused for words in says), refused
        for lock in Path(folder).iterdir():
            lock.unlink()
        os.chown(folder, 65534, 65534)
        assert subprocess.run([*enter, "65534"], capture_output=True, text=True, check=True).stdout == "in\n"
