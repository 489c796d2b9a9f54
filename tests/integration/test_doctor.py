"""`bulletin doctor` names what an admin got wrong, each fault made for real, with what to do; and is silent else."""

import email.utils
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bulletin.wire import keys
from tests.integration.conftest import PATIENCE_S, PoolProcess, until
from tests.integration.examining import HUB, PROXY, examine
from tests.other_users import in_mount_namespace
from tests.processes import has_ended

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away, and mounts")
#: What a computer may lack for which no set-up is to blame.
MACHINES_OWN = {"memory-limit", "namespaces"}
SHARED = "--Pool.isolation=shared"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a pool that has not been started yet."""
    folder = tmp_path / "pool"
    folder.mkdir(mode=0o711)
    return folder


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[PoolProcess]:
    pool = PoolProcess(tmp_path / "pool", "--slots", "1")
    yield pool
    pool.stop()


def hub_file(tmp_path: Path, text: str) -> Path:
    """A hub's file: what is right of it, and this."""
    path = tmp_path / "jupyterhub_config.py"
    path.write_text(HUB + text)
    return path


def configured(tmp_path: Path, *options: str) -> str:
    """The call of `configure` in a hub's file."""
    folder = str(tmp_path / "pool")
    return f"configure({', '.join(['c', f'folder={folder!r}', 'port=0', *options])})\n"


def test_of_a_pool_that_runs_and_is_sound_nothing_is_said(pool: PoolProcess) -> None:
    examined = examine("--folder", pool.folder, SHARED, f"--notebook-python={sys.executable}")
    assert (examined.status, examined.found) == (0, {})
    words = [sys.executable, "-P", "-m", "gpu_worker.cli", "doctor", "--folder", pool.folder, SHARED]
    said = subprocess.run(words, capture_output=True, text=True, check=True, cwd="/").stdout
    assert said.startswith(f"Nothing is wrong.\nLooked at: the pool in {pool.folder}.\nNot looked at: a hub")


@pytest.mark.skipif(not PROXY.exists(), reason="the proxy is not installed (make.py does)")
def test_of_a_hub_that_is_sound_nothing_is_wrong(tmp_path: Path) -> None:
    examined = examine("--hub", hub_file(tmp_path, configured(tmp_path, 'isolation="shared"')))
    assert (examined.status, set(examined.found) - MACHINES_OWN) == (0, set())
    assert examined.not_looked_at == []


def test_no_isolation_is_chosen(folder: Path, tmp_path: Path) -> None:
    hub = {"JUPYTERHUB_API_URL": "http://127.0.0.1:1/hub/api", "JUPYTERHUB_API_TOKEN": "t"}
    examined = examine("--folder", folder, **hub)
    assert examined.status == 1
    assert "'unix-user': each cell runs as" in examined.says("isolation")
    assert "does not answer at http://127.0.0.1:1/hub/api" in examined.says("hub-away")
    examined = examine("--hub", hub_file(tmp_path, configured(tmp_path)))
    assert "configure() needs isolation" in examined.says("hub-config")


def test_others_can_change_the_folder_or_read_its_keys(folder: Path) -> None:
    folder.chmod(0o777)
    (folder / "pool.json").write_text("{}")
    (folder / "pool.json").chmod(0o644)
    examined = examine("--folder", folder, SHARED)
    assert f"chmod go-w {folder}" in examined.says("folder-mode")
    assert f"chmod 600 {folder / 'pool.json'}" in examined.says("file-mode")
    (folder / "pool.json").chmod(0o600)
    folder.chmod(0o711)
    assert "is not a file of Bulletin" in examine("--folder", folder, SHARED).says("file-broken")


@as_root
def test_a_file_is_of_whoever_ran_a_command_as_somebody_else(folder: Path) -> None:
    path = folder / "nodes.json"
    path.write_text("{}")
    path.chmod(0o600)
    os.chown(path, 12345, 12345)
    assert "belongs to '12345', and its folder to 'root'. Somebody ran" in examine("--folder", folder, SHARED).says(
        "file-owner"
    )


def test_the_clock_was_set_back(folder: Path) -> None:
    keys.write_private(folder / "nodes.json", keys.NodesFile())
    ahead = time.time() + 7200
    os.utime(folder / "nodes.json", (ahead, ahead))
    assert "timedatectl" in examine("--folder", folder, SHARED).says("clock")


def test_a_port_is_taken_and_an_address_is_anothers(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        examined = examine("--folder", folder, SHARED, f"--Pool.kernel_port={port}")
        assert f"Port {port} of 127.0.0.1 is another program's, and Pool.kernel_port" in examined.says("port-taken")
    examined = examine("--folder", folder, SHARED, "--Pool.host=192.0.2.1")
    assert "192.0.2.1 is no address of this host" in examined.says("host-foreign")
    assert "tcp://HOST:PORT" in examine("--folder", folder, SHARED, "--Pool.advertise=gpu1").says("advertise")


def test_the_hub_cannot_have_its_ports_or_its_proxy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = f"c.JupyterHub.hub_bind_url = 'http://127.0.0.1:{port}'\n" + configured(tmp_path, 'isolation="shared"')
        text += "c.ConfigurableHTTPProxy.command = ['configurable-http-proxi']\n"
        examined = examine("--hub", hub_file(tmp_path, text))
        assert f"`ss -ltnp sport = :{port}`" in examined.says("port-taken")
        assert "npm install -g configurable-http-proxy" in examined.says("proxy")
        page = configured(tmp_path, 'isolation="shared"').replace("port=0", f"port={port}")
        assert f"cannot have port {port}" in examine("--hub", hub_file(tmp_path, page)).says("hub-config")


def test_what_is_set_after_configure_takes_away_what_it_set(tmp_path: Path) -> None:
    after = (
        "c.Spawner.server_token_scopes = ['users:activity!user']\nc.JupyterHub.load_roles = []\n"
        "c.JupyterHub.spawner_class = 'simple'\n"
    )
    examined = examine("--hub", hub_file(tmp_path, configured(tmp_path, 'isolation="shared"') + after))
    assert examined.wrong == ["hub-spawner", "server-scopes", "service-role"]
    assert "access:services!service=bulletin" in examined.says("server-scopes")
    assert "read:users:name, read:users:groups" in examined.says("service-role")
    assert "before configure" in examined.says("hub-spawner")


def test_a_hub_file_does_not_run_or_has_no_pool(tmp_path: Path) -> None:
    broken = hub_file(tmp_path, "configur(c)\n")
    line = len(broken.read_text().splitlines())
    assert f"{broken}: line {line}: NameError: name 'configur' is not defined" in examine("--hub", broken).says(
        "hub-config"
    )
    assert "does not call configure()" in examine("--hub", hub_file(tmp_path, "")).says("hub-without-pool")
    assert "there is no such file" in examine("--hub", tmp_path / "nowhere.py").says("hub-config")


def test_a_configuration_file_is_not_read_or_says_what_nothing_obeys(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "bulletin_config.py"
    config.write_text("c.Pool.isolatoin = 'shared'\nc.Poool.slots = 2\n")
    examined = examine("--hub", hub_file(tmp_path, configured(tmp_path, 'isolation="shared"')))
    assert f'pool_args=["--config", "{config}"]' in examined.says("config-unread")
    examined = examine("--folder", folder, SHARED, "--config", config)
    assert "Write c.Pool.isolation." in examined.says("config-word")
    assert "Write c.Pool." in examined.says("config-section")
    config.write_text("c.Command.exit_with_stdn = True\nc.Application.log_level = 30\n")
    examined = examine("--folder", folder, SHARED, "--config", config)
    assert "c.Command.exit_with_stdn" in examined.says("config-word")
    assert "Application" not in examined.says("config-word")
    config.rename(tmp_path / "pool.conf")
    examined = examine("--folder", folder, SHARED, "--config", tmp_path / "pool.conf")
    assert "ends in .py" in examined.says("config-name")
    words = "pool_args=['--Pool.requre=limits']"
    examined = examine("--hub", hub_file(tmp_path, configured(tmp_path, 'isolation="shared"', words)))
    assert "There is no option --Pool.requre. Did you mean --Pool.require?" in examined.says("pool-args")
    config.write_text("c.Pool.slots = = 2\n")
    assert f"{config}, line 1 cannot be read: SyntaxError" in examine(
        "--folder", folder, SHARED, "--config", config
    ).says("config-broken")
    assert "There is no configuration file" in examine("--folder", folder, SHARED, "--config", folder / "no.py").says(
        "config-missing"
    )
    config.write_text("c.Pool.slots = -1\n")
    assert "'slots'" in examine("--folder", folder, "--config", config).says("setting")


def test_a_file_that_others_can_change_is_not_run(tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    file = hub_file(tmp_path, f"open({str(trap)!r}, 'w')\n")
    file.chmod(0o666)
    assert f"chmod go-w {file}" in examine("--hub", file).says("hub-config-foreign")
    assert not trap.exists()


def test_the_quota_file_is_wrong_or_names_groups_that_the_hub_has_not(tmp_path: Path) -> None:
    quotas = tmp_path / "quotas.toml"
    named = "[projects.lab]\nguaranteed = 1\n[projects.maths]\nweight = 2\n[projects.clubs]\nlimit = 1\n"
    rules = (
        '[group_rules.clubs]\ngroups = ["club-*"]\nparent = "clubs"\n[group_rules.x]\nproperties = ["kind=course"]\n'
    )
    quotas.write_text(named + rules)
    text = "c.JupyterHub.load_groups = {'lab': {'users': ['ann']}}\n" + configured(
        tmp_path, 'isolation="shared"', f'pool_args=["--Pool.quota_file={quotas}"]', 'groups=["lab", "labs"]'
    )
    late = 'c.JupyterHub.load_roles = [one for one in c.JupyterHub.load_roles if one["name"] != "bulletin-service"]\n'
    examined = examine("--hub", hub_file(tmp_path, f"{text}\n{late}"))
    assert examined.wrong == ["group-properties", "pool-group", "quota-group", "service-role"]
    assert "The rule 'clubs' of the quota file is for no group that the hub has now" in examined.says("quota-rule")
    assert "The rule 'x' of the quota file asks for properties of groups" in examined.says("group-properties")
    assert "a project 'maths', and the hub has no group of that name" in examined.says("quota-group")
    assert "names the groups labs" in examined.says("pool-group")
    quotas.write_text("[projects.lab]\nguaranted = 1\n")
    assert f"{quotas}:2:" in examine("--hub", hub_file(tmp_path, text)).says("quota-file")


def test_the_ledger_is_of_another_bulletin(folder: Path) -> None:
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        ledger.execute("INSERT INTO alembic_version VALUES ('from-the-future')")
    ledger.close()
    (folder / "ledger.sqlite").chmod(0o600)
    assert "version from-the-future, which this Bulletin does not know" in examine("--folder", folder, SHARED).says(
        "ledger"
    )


def test_hub_and_pool_have_two_tokens(tmp_path: Path) -> None:
    env = tmp_path / "hub.env"
    env.write_text("JUPYTERHUB_API_URL=http://127.0.0.1:1/hub/api\nJUPYTERHUB_API_TOKEN=one-secret\n")
    other = configured(tmp_path, "start_pool=False", 'api_token="another-secret"')
    examined = examine("--hub", hub_file(tmp_path, other), SHARED, "--hub-env", env)
    assert "the same token into both files" in examined.says("token-differs")
    assert "secret" not in str(examined.found)
    none = configured(tmp_path, "start_pool=False")
    examined = examine("--hub", hub_file(tmp_path, none), SHARED, "--hub-env", env)
    assert "openssl rand -hex 32" in examined.says("token-missing")


def test_hub_users_are_no_unix_users(tmp_path: Path) -> None:
    text = "c.Authenticator.allowed_users = {'nobody-of-that-name', 'root'}\n" + configured(
        tmp_path, 'isolation="unix-user"', "pool_args=['--Pool.unix_groups=no-such-group']"
    )
    examined = examine("--hub", hub_file(tmp_path, text))
    assert "there is no Unix user 'nobody-of-that-name'" in examined.says("unix-user")
    assert "'root' is an account of the system" in examined.says("unix-user")
    assert "no such Unix group" in examined.says("unix-group")


def make_environment(path: Path, bulletin: str = "") -> Path:
    """An environment of Python with nothing in it, or as if this Bulletin were; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", path], check=True)
    python = path / "bin" / "python"
    if bulletin:
        (site,) = (path / "lib").glob("python*/site-packages")
        (site / f"bulletin-{bulletin}.dist-info").mkdir()
        (site / f"bulletin-{bulletin}.dist-info" / "METADATA").write_text(f"Name: bulletin\nVersion: {bulletin}\n")
    return python


def test_a_notebook_environment_lacks_what_it_needs(folder: Path, tmp_path: Path) -> None:
    folder.parent.chmod(0o755)
    examined = examine("--folder", folder, SHARED, f"--notebook-python={make_environment(tmp_path / 'bare')}")
    assert "pip install ipykernel" in examined.says("no-ipykernel")
    assert "%%gpu is unknown there" in examined.says("no-bulletin")
    examined = examine("--folder", folder, SHARED, f"--notebook-python={make_environment(tmp_path / 'old', '0.0.9')}")
    assert "has Bulletin 0.0.9, and the pool has" in examined.says("other-bulletin")
    examined = examine("--folder", folder, SHARED, "--notebook-python=/nowhere/python")
    assert "no interpreter" in examined.says("python-missing")


@as_root
@pytest.mark.parametrize("option", ["--notebook-python", "--hub-python"])
def test_root_runs_no_interpreter_whose_modules_others_can_change(folder: Path, tmp_path: Path, option: str) -> None:
    """That interpreter is root's, and so is each folder on the way; who writes into its modules would be root."""
    python, trap = make_environment(tmp_path / "course"), tmp_path / "ran"
    (site,) = (tmp_path / "course" / "lib").glob("python*/site-packages")
    (site / "sitecustomize.py").write_text(f"open({str(trap)!r}, 'w')\n")
    os.chown(site, 4711, 4711)
    examined = examine("--folder", folder, SHARED, "--hub", hub_file(tmp_path, ""), f"{option}={python}")
    assert f"{site} belongs to '4711'" in examined.says(option[2:].replace("notebook-", "") + "-foreign")
    assert not trap.exists()


def test_a_kernel_of_another_environment_is_looked_into(folder: Path, tmp_path: Path) -> None:
    kernel = tmp_path / "jupyter" / "kernels" / "course"
    kernel.mkdir(parents=True)
    argv = [str(make_environment(tmp_path / "course")), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Course", "language": "python"}))
    examined = examine(
        "--folder", folder, SHARED, f"--notebook-python={sys.executable}", JUPYTER_PATH=str(tmp_path / "jupyter")
    )
    assert "The kernel 'course'" in examined.says("no-ipykernel")


@as_root
def test_a_disk_is_full_and_shared_memory_small(folder: Path) -> None:
    under = in_mount_namespace(
        [f"mount -t tmpfs -o size=1m,mode=711 tmpfs {folder}", "mount -t tmpfs -o size=64m tmpfs /dev/shm"]
    )
    if subprocess.run([*under, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    examined = examine("--folder", folder, SHARED, under=under)
    assert "0.00 GB left" in examined.says("disk-full")
    assert "--shm-size" in examined.says("shm-small")


def test_a_pool_that_was_killed_is_dead(pool: PoolProcess) -> None:
    broker = pool.part("broker")
    pool.process.send_signal(signal.SIGKILL)
    pool.process.wait()
    until(lambda: has_ended(broker), "the broker to end with its parent")
    examined = examine("--folder", pool.folder, SHARED)
    assert "has not ended as it should" in examined.says("pool-dead")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Path]:
    """The folder of a broker that runs without any agent."""
    folder = tmp_path / "pool"
    words = [sys.executable, "-P", "-m", "gpu_worker.cli"]
    with (tmp_path / "broker.log").open("wb") as log:
        process = subprocess.Popen([*words, "broker", "--folder", folder], stderr=log, cwd=tmp_path)
        try:
            until((folder / "public.json").exists, "the broker to listen")
            yield folder
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def make_node(broker: Path, name: str) -> Path:
    """Register a node; the folder of its agent, with its file."""
    words = [sys.executable, "-P", "-m", "gpu_worker.cli", "node", "add", name, "--folder", broker]
    address = keys.read_private(broker / "pool.json", keys.PoolFile).agent_address
    node = broker.parent / name
    node.mkdir(mode=0o711)
    subprocess.run([*words, "--address", address, "--out", node / "node.json"], check=True, capture_output=True)
    return node


def test_a_node_is_told_why_its_broker_does_not_let_it_in(broker: Path) -> None:
    removed, good, elsewhere = (make_node(broker, name) for name in ("removed", "good", "elsewhere"))
    words = [sys.executable, "-P", "-m", "gpu_worker.cli", "node", "remove", "removed", "--folder", broker]
    subprocess.run(words, check=True, capture_output=True)
    node_file = keys.read_private(elsewhere / "node.json", keys.NodeFile)
    strange = keys.NodeFile(
        node="elsewhere",
        broker_address=node_file.broker_address,
        broker_public_key=keys.make_keys().public,
        keys=node_file.keys,
    )
    keys.write_private(elsewhere / "node.json", strange)
    assert "bulletin node add removed --replace" in examine("--folder", removed, SHARED).says("old-keys")
    assert "is not the broker that" in examine("--folder", elsewhere, SHARED).says("other-broker")
    assert examine("--folder", good, SHARED).wrong == []
    shutil.copy(broker / "pool.json", good / "pool.json")
    assert "both node.json and pool.json" in examine("--folder", good, SHARED).says("two-roles")
    examined = examine("--folder", broker, SHARED)
    assert "good: not there" in str(examined.found["node-absent"]) or "elsewhere: not there" in str(examined.found)
    assert "no slots" in examined.says("no-agent")
    assert "Set Pool.host" in examined.says("broker-hidden")


@as_root
def test_who_may_not_look_into_a_folder_is_told_so(folder: Path, tmp_path: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv (util-linux) to be less than root with")
    folder.chmod(0o700)
    os.chown(folder, 12345, 12345)
    without = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    for within in (folder, folder / "deeper"):
        examined = examine("--folder", within, SHARED, under=without)
        assert "sudo -u USER bulletin doctor" in examined.says("folder-closed")
    examined = examine("--hub", folder / "jupyterhub_config.py", under=without)
    assert "may not see it" in examined.says("hub-config")
    examined = examine("--folder", tmp_path, SHARED, "--config", folder / "c.py", under=without)
    assert "may not see" in examined.says("config-closed")


class ClockBehind(BaseHTTPRequestHandler):
    """A hub on a computer whose clock is an hour behind."""

    def do_GET(self) -> None:
        self.send_response_only(200)
        self.send_header("Date", email.utils.formatdate(time.time() - 3600, usegmt=True))
        self.end_headers()
        self.wfile.write(b'{"version": "6.0", "scopes": ["read:users:name", "read:users:groups"]}')

    def log_message(self, *_: object) -> None:
        pass


def test_the_hubs_clock_is_another(folder: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), ClockBehind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        hub = {
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{server.server_address[1]}/hub/api",
            "JUPYTERHUB_API_TOKEN": "t",
        }
        assert "s behind" in examine("--folder", folder, SHARED, **hub).says("clock-hub")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_what_an_agent_must_give_and_cannot_is_named_and_else_only_advised(folder: Path) -> None:
    words = ("--folder", folder, SHARED, "--Pool.require=memory-limit")
    examined = examine(*words)
    if "memory-limit" not in examined.found:
        pytest.skip("the kernel limits memory here")
    assert examined.status == 1
    assert "Pool.require lists it" in examined.says("memory-limit")
    hub = {"JUPYTERHUB_API_URL": "http://127.0.0.1:1/hub/api", "JUPYTERHUB_API_TOKEN": "t"}
    assert examine("--folder", folder, SHARED, **hub).found["memory-limit"]["level"] == "advice"


@as_root
def test_root_looks_at_the_pool_of_another_user(pool: PoolProcess) -> None:
    for path in (pool.folder, *pool.folder.iterdir()):
        os.chown(path, 12345, 12345)
    examined = examine("--folder", pool.folder, SHARED)
    assert (examined.status, examined.found) == (0, {})
