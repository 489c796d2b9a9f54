"""A hub whose notebooks are jobs of a real Slurm, by batchspawner: `configure` goes with it as with any spawner."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.hub import REPOSITORY, Hub
from tests.acceptance.notebook import Kernel
from tests.integration.slurm_cluster import Slurm, cluster

#: A hub with batchspawner, whose user is the Unix user of the tests. Nodes of the cluster are this host.
CONFIG = """\
import os
from pathlib import Path
from bulletin_spawner.ports import find_free_ports
from bulletin_spawner.setup import configure

c = get_config()
port, proxy_api_port, hub_port, page_port = find_free_ports([0, 0, 0, 0])
c.JupyterHub.bind_url = f"http://127.0.0.1:{{port}}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{{hub_port}}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{{proxy_api_port}}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.services.append({{"name": "test", "api_token": os.environ["BULLETIN_TEST_TOKEN"]}})
c.JupyterHub.load_roles.append({{"name": "test", "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "tokens", "access:servers", "access:services", "shutdown"]}})

c.JupyterHub.spawner_class = "batchspawner.SlurmSpawner"
c.Spawner.start_timeout = c.Spawner.http_timeout = 180
c.Spawner.args = ["--allow-root"]
c.SlurmSpawner.exec_prefix = ""
c.SlurmSpawner.req_runtime = "30:00"
c.SlurmSpawner.req_options = "--output=" + {log!r}
c.Spawner.cmd = [{programs!r} + "/jupyterhub-singleuser"]
c.SlurmSpawner.batchspawner_singleuser_cmd = {programs!r} + "/batchspawner-singleuser"
c.Spawner.environment = {{"SLURM_CONF": {slurm_conf!r}}}
c.SlurmSpawner.batch_query_cmd = "squeue -h -j {{job_id}} -o '%T 127.0.0.1'"
configure(c, folder={pool!r}, isolation="shared", pool_args=["--slots=1", "--device=cpu"], port=page_port)

run = Path(os.environ["BULLETIN_RUN"])
run.mkdir(exist_ok=True)
(run / "address").write_text(c.JupyterHub.bind_url)
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with cluster() as made:
        yield made


@pytest.fixture(scope="module")
def hub(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder: Path = tmp_path_factory.mktemp("hub")
    proxy = str(REPOSITORY / "node_modules" / ".bin" / "configurable-http-proxy")
    about = {
        "proxy": proxy,
        "pool": str(folder / "pool"),
        "log": str(folder / "job.log"),
        "programs": str(Path(sys.executable).parent),
        "slurm_conf": slurm.environ["SLURM_CONF"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", slurm.environ["SLURM_CONF"])
        hub = Hub(folder, CONFIG.format(**about))
        try:
            hub.start()
            yield hub
        finally:
            hub.stop()


def test_a_notebook_that_is_a_job_has_gpu_cells_at_once(hub: Hub, slurm: Slurm) -> None:
    hub.start_server("root")
    (job,) = slurm.jobs("RUNNING")
    with Kernel(hub, "root") as kernel:
        assert kernel.run("import os\nprint(os.environ['SLURM_JOB_ID'])").strip() == job
        kernel.run("value = 41")
        assert kernel.run("%%gpu\nvalue += 1\nprint(value, os.environ.get('SLURM_JOB_ID'))").startswith("42 None")
        assert kernel.run("print(value)") == "42\n"
