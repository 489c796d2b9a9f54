"""A node that does not share the notebook's folder.

Notebook and pool are in mount namespaces of their own, each with another folder under the same name.
"""

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, Output, PoolProcess


def skip_without_mounts() -> None:
    """Skip where no mount namespace can be made, with the reason."""
    if shutil.which("unshare") is None or os.getuid() != 0:
        pytest.skip("only root makes mount namespaces here, with unshare(1)")


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook's."""
    return tmp_path_factory.mktemp("home") / "course"


@pytest.fixture(scope="package")
def pool(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[PoolProcess]:
    """A pool on a host that has an empty folder where the notebook's is, and files for temporary files of its own."""
    skip_without_mounts()
    folder.mkdir()
    base = tmp_path_factory.mktemp("pool")
    boot, scratch = base / "boot_id", base / "tmp"
    boot.write_text(str(uuid.uuid4()))
    scratch.mkdir()
    read_only = folder.with_name("read-only")  # of what the node shares
    read_only.mkdir()
    mounts = f"mount --bind {read_only} {read_only}; mount -o remount,bind,ro {read_only}; "
    mounts += f"mount -t tmpfs tmpfs {folder}; mount --bind {boot} /proc/sys/kernel/random/boot_id"
    under = ["unshare", "-m", "env", f"TMPDIR={scratch}", "sh", "-ec", f'{mounts}; exec "$@"', "sh"]
    process = PoolProcess(base / "p", "--slots", "2", "--Pool.preload=numpy", under=under)
    yield process
    process.stop()
    assert list(scratch.iterdir()) == [], "no file of a notebook stays on the node"


@pytest.fixture(scope="package")
def notebook(pool: PoolProcess, folder: Path) -> Iterator[Notebook]:
    """A notebook in the folder."""
    opened = Notebook({"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json")}, folder)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _clean(folder: Path) -> Iterator[None]:
    yield
    left = [path.name for path in folder.rglob(".bulletin-*")]
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    assert left == [], "nothing of our own stays in the notebook's folder"


def gpu(notebook: Notebook, code: str) -> Output:
    """Run a cell on the pool, which must succeed."""
    output = notebook.run(f"%%gpu\n{code}")
    assert output.error is None, output.shown
    return output
