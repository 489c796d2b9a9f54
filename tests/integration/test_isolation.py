"""What cells of a hub's users see of the hub, and what people are told of whose Unix user they run as."""

import getpass
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin_spawner.service.pages import describe_page
from gpu_worker.agent.node_protections import find_namespace_problem
from tests.integration.hub_pool import HubPool
from tests.other_users import free_uid, in_mount_namespace, with_readable_python, with_users

#: Of the hub's operator: none of it is a user's business, whatever it is called.
OPERATORS = {
    "SMTP_PASS": "smtp-secret",
    "DATABASE_URL": "postgres://hub:secret@db/hub",
    "MYSQL_PWD": "secret",
    "OPENAI_KEY": "secret",
    "SSH_AUTH_SOCK": "/run/agent.sock",
    "XDG_RUNTIME_DIR": "/run/user/0",
    "ANYTHING_ELSE": "secret",
}
#: What a cell may find: what a login has, what Bulletin sets, and what Python and its libraries make themselves.
KNOWN = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_", "TZ", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"),
    *("PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "HF_HOME"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("CUDA_", "NVIDIA_", "NCCL_", "OMP_", "MKL_", "OPENBLAS_", "BULLETIN_EXECUTOR", "PYTORCH_NVML_BASED_CUDA_CHECK"),
    *("MPLBACKEND", "KMP_"),
    *("CLICOLOR", "FORCE_COLOR", "GIT_PAGER", "PAGER", "TERM"),  # of every kernel
)  # fmt: skip


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubPool]:
    options = "--Pool.environment=HF_HOME=/srv/models"
    pool = HubPool(tmp_path_factory.mktemp("hub"), 1, options, CUDA_CACHE_PATH="/c", **OPERATORS)
    yield pool
    pool.stop()


def test_a_cell_sees_of_the_hubs_environment_what_is_known_to_be_harmless(pool: HubPool) -> None:
    eve = pool.open("eve", "course")
    shown = eve.run("%%gpu\nimport json, os\nprint(json.dumps(dict(os.environ)))").stream()
    found = json.loads(shown[shown.index("{") :])
    unknown = {name for name in found if not name.upper().startswith(KNOWN)}
    assert unknown == set()
    assert not set(OPERATORS) & set(found)
    assert (found["HF_HOME"], found["CUDA_CACHE_PATH"]) == ("/srv/models", "/c")
    everything = pool.process.part("zygote").environ()
    assert "secret" not in " ".join(everything.values()), "nor does its parent have it"


def test_everybody_is_told_whose_unix_user_cells_run_as(pool: HubPool) -> None:
    sentence = f"All cells run as the Unix user {getpass.getuser()!r}: whoever runs one can read and change everything"
    assert sentence in pool.open("ann", "course").run("%gpu").shown
    assert pool.process.picture().shared_accounts == (getpass.getuser(),)
    log = Path(pool.process.log.name).read_text()
    assert "all cells run as one Unix user" in log


#: Runs a program without the right to make namespaces.
WITHOUT_NAMESPACES = ("setpriv", "--bounding-set", "-sys_admin") if os.getuid() == 0 else ()


def test_cells_of_a_hubs_users_have_namespaces_where_the_node_can_make_them(pool: HubPool) -> None:
    ann, bea = pool.open("ann", "course"), pool.open("bea", "course")
    look = "%%gpu\nimport os\nprint([p for p in os.listdir('/proc') if p.isdigit()], os.listdir('/dev/shm'))"
    is_missing = "namespaces" in pool.process.picture().missing_protections
    if find_namespace_problem():
        assert is_missing
        return
    assert not is_missing
    for notebook in (ann, bea):
        assert notebook.run(look).stream() == "['1', '2'] []\n"
        notebook.run("%%gpu\nopen('/dev/shm/secret', 'w').close()")
        notebook.run("%gpu off")


def test_where_a_node_cannot_make_namespaces_people_are_told_what_that_means(tmp_path: Path) -> None:
    pool = HubPool(tmp_path, 1, under=WITHOUT_NAMESPACES)
    try:
        notebook = pool.open("ann", "course")
        assert notebook.run("%%gpu\nprint('runs')").stream() == "runs\n"
        node = socket.gethostname()
        assert pool.process.picture().missing_protections["namespaces"] == (node,)
        sentence = f"Cells on {node} see each other's processes and what is in /dev/shm"
        assert sentence in notebook.run("%gpu").shown
        told = " ".join(describe_page(pool.process.picture()).warnings)
        assert sentence in told
        assert "cells of this node lack a protection" in Path(pool.process.log.name).read_text()
    finally:
        pool.close_notebooks()
        pool.stop()


def test_an_agent_does_not_start_where_something_is_missing_that_an_admin_requires(tmp_path: Path) -> None:
    command = [*WITHOUT_NAMESPACES, sys.executable, "-m", "gpu_worker.cli", "pool", "--folder", str(tmp_path / "p")]
    options = ["--isolation", "shared", "--Pool.require=namespaces"]
    pool = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert pool.returncode == 78
    assert "Pool.require lists 'namespaces', which this node cannot give its cells" in pool.stderr


#: Tells that somebody has imported it.
PLANTED = "import os, pathlib\npathlib.Path(__file__).with_suffix(f'.{os.getuid()}').touch()\n"


@pytest.fixture(scope="module")
def root_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubPool]:
    """A pool whose cells run as their users, started by root in a folder of ann's."""
    if os.getuid() != 0:
        pytest.skip("only root may become another user")
    users = tmp_path_factory.mktemp("users")
    uid = free_uid(61_000)
    uids = {"ann": uid, "shut": free_uid(uid + 1), "guest": free_uid(uid + 2)}
    users_known = with_users(users, uids, groups={"lab": ["ann", "shut"]}, shells={"shut": "/usr/sbin/nologin"})
    under = in_mount_namespace([*with_readable_python(users), *users_known])
    theirs = users / "ann" / "environment" / "bin" / "python"
    theirs.parent.mkdir(parents=True)
    theirs.symlink_to(sys.executable)
    for name in ("numpy", "sqlalchemy"):
        (users / "ann" / f"{name}.py").write_text(PLANTED)
    for path in (users / "ann").rglob("*"):
        os.lchown(path, uid, uid)
    options = ("--isolation", "unix-user", "--Pool.unix_groups=lab", f"--Pool.environments=theirs={theirs}")
    pool = HubPool(tmp_path_factory.mktemp("hub"), 1, *options, under=[*under, "env", "-C", str(users / "ann")])
    yield pool
    pool.close_notebooks()
    pool.stop()


def test_no_cell_runs_as_an_account_of_the_system_or_of_who_may_not_run_any(root_pool: HubPool) -> None:
    for name, why in (
        ("root", "account of the system"),
        ("daemon", "account of the system"),
        ("nobody", "may not log in on the node"),
        ("no-such-person", "there is no Unix user 'no-such-person'"),
        ("shut", "may not log in on the node"),
        ("guest", "'guest' is in none of the groups on the node"),
    ):
        refused = root_pool.open(name, "course").run("%%gpu\nprint('runs')")
        assert refused.error is not None, name
        assert why in refused.shown, refused.shown
    assert root_pool.process.picture().shared_accounts == ()


def test_root_imports_nothing_that_a_user_can_change(root_pool: HubPool) -> None:
    ann = root_pool.open("ann", "course")
    assert ann.run("%%gpu\nprint('runs')").stream() == "runs\n"
    refused = ann.run("%%gpu --environment theirs\nprint('runs')")
    assert refused.error is not None
    assert "others than root can change the environment" in refused.shown
    assert "ann belongs to 'ann'. Its zygote is root" in refused.shown
    (start,) = {Path(root_pool.process.part(part).cwd()) for part in ("broker", "agent")}
    assert (start / "numpy.py").exists()
    assert [path.name for path in start.glob("*.0")] == []
