"""`bulletin doctor` names what is wrong with a hub's files, each fault made for real, with what to do."""

import email.utils
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.doctor.conftest import SHARED, configured, hub_file
from tests.integration.examining import PROXY, examine

#: What a computer may lack for which no set-up is to blame.
MACHINES_OWN = {"memory-limit", "namespaces"}


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
    groups = hub_file(tmp_path, "import grp\ngrp.getgrnam('bulletin-none')\n")
    assert "`groupadd bulletin-none` makes it" in examine("--hub", groups).says("hub-config")
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
