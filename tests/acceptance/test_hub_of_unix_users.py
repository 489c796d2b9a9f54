"""A hub of Unix users, set up as docs/howto/your-hub.md says: who logs in is, on the pool, their own Unix user."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_worker.agent.node_protections import find_namespace_problem
from tests.acceptance.hub import REPOSITORY, Hub
from tests.acceptance.notebook import Kernel
from tests.other_users import free_uid, in_mount_namespace, with_readable_python, with_users

if os.getuid() != 0:
    pytest.skip("only root may become other users", allow_module_level=True)
if problem := find_namespace_problem():
    pytest.skip(f"no namespaces here: {problem}", allow_module_level=True)

UIDS = {"alice": free_uid(61_000), "bob": free_uid(62_000)}
#: An ordinary hub: Unix users, at home where they are at home, each server as its user.
ORDINARY = """\
import os
from pathlib import Path
from bulletin_spawner.ports import find_free_ports

c = get_config()
port, proxy_api_port, hub_port = find_free_ports([0, 0, 0])
c.JupyterHub.bind_url = f"http://127.0.0.1:{{port}}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{{hub_port}}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{{proxy_api_port}}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Spawner.start_timeout = c.Spawner.http_timeout = 180
c.JupyterHub.services.append({{"name": "test", "api_token": os.environ["BULLETIN_TEST_TOKEN"]}})
c.JupyterHub.load_roles.append({{"name": "test", "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "tokens", "access:servers", "access:services", "shutdown"]}})
run = Path(os.environ["BULLETIN_RUN"])
run.mkdir(exist_ok=True)
(run / "address").write_text(c.JupyterHub.bind_url)
"""


def page_says() -> str:
    """What the page has its reader put into jupyterhub_config.py."""
    page = (REPOSITORY / "docs" / "howto" / "your-hub.md").read_text()
    (block,) = re.findall(r"```python\n( *from bulletin_spawner\.setup import configure\n.*?)```", page, re.DOTALL)
    return "\n".join(line.strip() for line in block.splitlines())


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:  # not below pytest's, which is for its user alone
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture(scope="module")
def hub(folder: Path) -> Iterator[Hub]:
    made = [*with_readable_python(folder), *with_users(folder, UIDS)]
    # What is in /var/lib of this computer is none of the hub's business: it has one of its own.
    under = in_mount_namespace([*made, "mount -t tmpfs tmpfs /var/lib"])
    proxy = str(REPOSITORY / "node_modules" / ".bin" / "configurable-http-proxy")
    hub = Hub(folder, ORDINARY.format(proxy=proxy) + page_says(), under)
    try:
        hub.start()
        yield hub
    finally:
        hub.stop()
    assert hub.left_over() == []


def test_each_user_is_their_own_unix_user_on_the_pool(hub: Hub) -> None:
    for name, uid in UIDS.items():
        hub.start_server(name)
        with Kernel(hub, name) as kernel:
            for where in ("", "%%gpu\n"):
                ids = kernel.run(f"{where}import os\nprint(os.getresuid(), os.getgroups())")
                assert ids == f"{(uid,) * 3} [{uid}]\n"
            assert kernel.run("%%gpu\n!id -un").strip() == name
            kernel.run("%%gpu\nopen(os.path.expanduser('~/result.txt'), 'w').write('of the pool')")
            assert kernel.run("print(open(os.path.expanduser('~/result.txt')).read())") == "of the pool\n"
            assert "cells run as the Unix user" not in kernel.run("%gpu")
