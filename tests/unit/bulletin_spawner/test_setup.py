"""What `configure(c)` makes of a hub's configuration."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from jupyterhub.services.service import Service
from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner
from traitlets.config import Config

from bulletin.errors import BadConfig
from bulletin.hub_scopes import ACCESS_SCOPE, LEAD_SCOPE, MANAGE_SCOPE
from bulletin_spawner.ports import find_free_ports, hold_port
from bulletin_spawner.setup import configure
from bulletin_spawner.spawner import BulletinMixin, BulletinSpawner
from tests.other_users import in_mount_namespace, with_readable_python


def roles(c: Config) -> dict[str, list[str]]:
    return {role["name"]: role["scopes"] for role in c.JupyterHub.load_roles}


def test_everybody_may_use_the_pool_where_no_groups_are_named(tmp_path: Path) -> None:
    c = Config()
    configure(c, isolation="shared", folder=tmp_path)
    assert c.JupyterHub.extra_user_scopes == {ACCESS_SCOPE}
    assert "bulletin-users" not in roles(c)


def test_only_members_may_where_groups_are_named(tmp_path: Path) -> None:
    c = Config()
    configure(c, isolation="shared", folder=tmp_path, groups=["course"], managers=["staff"])
    assert "extra_user_scopes" not in c.JupyterHub
    assert roles(c)["bulletin-users"] == [ACCESS_SCOPE]
    assert roles(c)["bulletin-managers"] == [ACCESS_SCOPE, MANAGE_SCOPE]
    groups = {role["name"]: role.get("groups") for role in c.JupyterHub.load_roles}
    assert (groups["bulletin-users"], groups["bulletin-managers"]) == (["course"], ["staff"])


def test_prometheus_has_a_token_that_reads_metrics_and_nothing_else(tmp_path: Path) -> None:
    c = Config()
    configure(c, isolation="shared", folder=tmp_path, metrics_token="t" * 32)
    (reader,) = [one for one in c.JupyterHub.services if one["name"] == "bulletin-metrics"]
    assert reader["api_token"] == "t" * 32
    (role,) = [one for one in c.JupyterHub.load_roles if "bulletin-metrics" in one.get("services", ())]
    assert role["scopes"] == ["read:metrics", ACCESS_SCOPE]
    with pytest.raises(BadConfig, match="openssl rand -hex 32"):
        configure(Config(), isolation="shared", folder=tmp_path, metrics_token="guess me")


def test_without_a_token_for_metrics_nothing_is_added(tmp_path: Path) -> None:
    c = Config()
    configure(c, isolation="shared", folder=tmp_path)
    assert [one["name"] for one in c.JupyterHub.services] == ["bulletin"]


def test_a_servers_token_keeps_what_it_could_do_before(tmp_path: Path) -> None:
    c = Config()
    configure(c, isolation="shared", folder=tmp_path)
    assert c.Spawner.server_token_scopes == ["users:activity!user", "access:servers!server", ACCESS_SCOPE]


def test_a_servers_token_manages_the_pool_only_where_that_is_asked_for(tmp_path: Path) -> None:
    c = Config()
    configure(c, isolation="shared", folder=tmp_path, manage_from_servers=True)
    assert c.Spawner.server_token_scopes[-4:] == [ACCESS_SCOPE, MANAGE_SCOPE, LEAD_SCOPE, "admin-ui"]


def test_what_the_config_file_had_set_stays(tmp_path: Path) -> None:
    c = Config()
    c.JupyterHub.services = [{"name": "culler"}]
    c.JupyterHub.load_roles = [{"name": "culler", "scopes": ["list:users"]}]
    c.JupyterHub.custom_scopes = {"custom:x": {"description": "x"}}
    c.JupyterHub.extra_user_scopes = {"read:hub"}
    c.Spawner.server_token_scopes = ["inherit"]
    configure(c, isolation="shared", folder=tmp_path)
    assert [service["name"] for service in c.JupyterHub.services] == ["culler", "bulletin"]
    assert roles(c)["culler"] == ["list:users"]
    assert set(c.JupyterHub.custom_scopes) == {"custom:x", LEAD_SCOPE, MANAGE_SCOPE}
    assert c.JupyterHub.extra_user_scopes == {"read:hub", ACCESS_SCOPE}
    assert c.Spawner.server_token_scopes == ["inherit", ACCESS_SCOPE]


def test_what_the_config_file_had_added_to_a_default_stays(tmp_path: Path) -> None:
    c = Config()
    c.JupyterHub.services.append({"name": "culler"})
    configure(c, isolation="shared", folder=tmp_path)
    assert [service["name"] for service in c.JupyterHub.services] == ["culler", "bulletin"]


def test_token_scopes_that_are_a_function_cannot_be_added_to(tmp_path: Path) -> None:
    c = Config()
    c.Spawner.server_token_scopes = lambda spawner: []
    with pytest.raises(BadConfig, match="is a function"):
        configure(c, isolation="shared", folder=tmp_path)


@pytest.mark.parametrize(
    ("given", "base"),
    [
        (None, LocalProcessSpawner),
        ("simple", SimpleLocalProcessSpawner),
        ("jupyterhub.spawner.SimpleLocalProcessSpawner", SimpleLocalProcessSpawner),
        (SimpleLocalProcessSpawner, SimpleLocalProcessSpawner),
    ],
)
def test_the_hubs_own_spawner_learns_about_the_pool(tmp_path: Path, given: str | type | None, base: type) -> None:
    c = Config()
    if given is not None:
        c.JupyterHub.spawner_class = given
    configure(c, isolation="shared", folder=tmp_path)
    made = c.JupyterHub.spawner_class
    assert made.__mro__.index(BulletinMixin) < made.__mro__.index(base)
    assert made(config=c).pool_folder == str(tmp_path)


def test_a_spawner_that_knows_the_pool_is_taken_as_it_is(tmp_path: Path) -> None:
    c = Config()
    c.JupyterHub.spawner_class = "bulletin_spawner.spawner.BulletinSpawner"
    configure(c, isolation="shared", folder=tmp_path)
    assert c.JupyterHub.spawner_class is BulletinSpawner


def test_the_service_starts_the_pool_with_the_given_options_unless_it_runs_elsewhere(tmp_path: Path) -> None:
    c, other = Config(), Config()
    configure(c, isolation="shared", folder=tmp_path, pool_args=["--slots=2"])
    configure(other, folder=tmp_path, start_pool=False)
    start = [sys.executable, "-P", "-m", "bulletin_spawner.service", "--folder", str(tmp_path)]
    assert c.JupyterHub.services[0]["command"] == [*start, "--", "--isolation", "shared", "--slots=2"]
    assert other.JupyterHub.services[0]["command"] == [*start, "--no-pool"]
    configure(known := Config(), folder=tmp_path, start_pool=False, api_token="of the pool, too")
    assert known.JupyterHub.services[0]["api_token"] == "of the pool, too"
    assert "api_token" not in c.JupyterHub.services[0]


@pytest.mark.parametrize("isolation", ["unix-user", "shared"])
def test_whose_unix_user_cells_run_as_is_chosen_by_the_admin_and_by_nobody_else(isolation: str, tmp_path: Path) -> None:
    c = Config()
    with pytest.raises(BadConfig, match="needs isolation"):
        configure(c, folder=tmp_path)
    assert "services" not in c.JupyterHub
    configure(c, folder=tmp_path, isolation=isolation)  # type: ignore[arg-type]
    assert isolation in c.JupyterHub.services[0]["command"]


def test_a_hub_waits_longer_for_the_service_than_it_would_by_itself(tmp_path: Path) -> None:
    c = Config()
    configure(c, isolation="shared", folder=tmp_path)
    (service,) = c.JupyterHub.services
    assert Service(**service).timeout > Service(name="other").timeout


#: Tries to get a port by all means that there are.
SQUATS = """
import socket, sys
outcomes = set()
for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):
    for host in ("127.0.0.1", ""):
        with socket.socket() as sock:
            for option in options:
                sock.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                sock.bind((host, int(sys.argv[1])))
                sock.listen()
                outcomes.add("got it")
            except OSError as error:
                outcomes.add(error.strerror)
print(outcomes)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("is_listening", [False, True])
def test_nobody_else_gets_the_port_of_the_page_whether_it_listens_or_not(tmp_path: Path, is_listening: bool) -> None:
    port = hold_port(0)
    under = in_mount_namespace(with_readable_python(tmp_path))
    squat = [*under, "setpriv", "--reuid", "4711", sys.executable, "-c", SQUATS, str(port)]
    with socket.socket() as page:
        if is_listening:
            for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                page.setsockopt(socket.SOL_SOCKET, option, 1)
            page.bind(("127.0.0.1", port))
            page.listen()
        tried = subprocess.run(squat, stdout=subprocess.PIPE, text=True, check=True)
    assert tried.stdout == "{'Address already in use'}\n"


def test_a_port_that_somebody_else_has_is_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(BadConfig, match=rf"cannot have port {port} of 127.0.0.1 \(Address already in use\)"):
            configure(Config(), isolation="shared", folder=tmp_path, port=port)


def test_a_page_does_not_share_its_port_with_that_of_another_hub(tmp_path: Path) -> None:
    port = hold_port(0)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        page = subprocess.run(
            [sys.executable, "-P", "-m", "bulletin_spawner.service", "--folder", str(tmp_path), "--no-pool"],
            env={**os.environ, "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{port}"},
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert page.returncode == 1
    assert f"Another program of this Unix user listens on port {port}" in page.stderr


def test_ports_are_the_wanted_ones_or_others_and_never_the_same_twice() -> None:
    (taken,) = find_free_ports([0])
    first, second = find_free_ports([taken, taken])
    assert first == taken
    assert second != taken
