"""What cells of a hub's users see of the hub, and what people are told of whose Unix user they run as."""

import getpass
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.hub_pool import HubPool

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
    everything = eve.run("%%gpu\nprint(open(f'/proc/{os.getppid()}/environ').read())").stream()
    assert "secret" not in everything, "nor does its parent have it"


def test_everybody_is_told_whose_unix_user_cells_run_as(pool: HubPool) -> None:
    sentence = f"All cells run as the Unix user {getpass.getuser()!r}: whoever runs one can read and change everything"
    assert sentence in pool.open("ann", "course").run("%gpu").shown
    assert pool.process.picture().shared_accounts == (getpass.getuser(),)
    log = Path(pool.process.log.name).read_text()
    assert "all cells run as one Unix user" in log


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_no_cell_runs_as_an_account_of_the_system(tmp_path: Path) -> None:
    pool = HubPool(tmp_path, 1, "--isolation", "unix-user")
    try:
        for name, why in (
            ("root", "account of the system"),
            ("daemon", "account of the system"),
            ("nobody", "account of the system"),
            ("no-such-person", "there is no Unix user 'no-such-person'"),
        ):
            refused = pool.open(name, "course").run("%%gpu\nprint('runs')")
            assert refused.error is not None, name
            assert why in refused.shown, refused.shown
        assert pool.process.picture().shared_accounts == ()
    finally:
        pool.close_notebooks()
        pool.stop()
