"""Who a kernel is, by the token its server has: the one fact on which the broker lets people in."""

import http.cookiejar
import json
import urllib.error
import urllib.parse
import urllib.request

import pytest

from bulletin.hub_scopes import ACCESS_SCOPE, ADMIN_PAGE_SCOPE, MANAGE_SCOPE
from tests.acceptance.hub import Hub
from tests.acceptance.notebook import Kernel

ASK_THE_HUB = """
import json, os, urllib.request
request = urllib.request.Request(
    os.environ["JUPYTERHUB_API_URL"] + "/user", headers={"Authorization": "token " + os.environ["JUPYTERHUB_API_TOKEN"]}
)
print(urllib.request.urlopen(request).read().decode())
"""


def model_of(hub: Hub, user: str) -> dict[str, object]:
    """What the hub says to the token of a user's kernel."""
    hub.start_server(user)
    with Kernel(hub, user) as kernel:
        model: dict[str, object] = json.loads(kernel.run(ASK_THE_HUB))
    return model


def test_a_members_kernel_has_a_token_that_opens_the_pool_and_no_other(hub: Hub) -> None:
    model = model_of(hub, "ada")
    scopes = model["scopes"]
    assert isinstance(scopes, list)
    assert (model["kind"], model["name"]) == ("user", "ada")
    assert ACCESS_SCOPE in scopes
    assert "users:activity!user=ada" in scopes  # what a server needs anyway
    assert MANAGE_SCOPE not in scopes


def test_the_kernel_of_somebody_outside_the_groups_has_not(hub: Hub) -> None:
    model = model_of(hub, "carol")
    assert ACCESS_SCOPE not in model["scopes"]  # type: ignore[operator]
    assert "users:activity!user=carol" in model["scopes"]  # type: ignore[operator]


def test_kernels_find_the_pool_and_see_no_gpu(hub: Hub) -> None:
    hub.start_server("ada")
    with Kernel(hub, "ada") as kernel:
        found = json.loads(
            kernel.run(
                "import json, os; print(json.dumps({n: os.environ.get(n) for n in ('BULLETIN_ADDRESS', "
                "'BULLETIN_PUBLIC_KEY', 'CUDA_VISIBLE_DEVICES', 'NVIDIA_VISIBLE_DEVICES', 'BULLETIN_TOKEN')}))"
            )
        )
    assert found["BULLETIN_ADDRESS"].startswith("tcp://")
    assert len(found["BULLETIN_PUBLIC_KEY"]) == 40
    assert (found["CUDA_VISIBLE_DEVICES"], found["NVIDIA_VISIBLE_DEVICES"]) == ("", "void")
    assert found["BULLETIN_TOKEN"] is None


def test_no_secret_of_the_hub_or_the_pool_is_in_a_command_line_or_a_readable_file(hub: Hub) -> None:
    pool = json.loads((hub.run / "pool" / "pool.json").read_text())
    shown = hub.command_lines() + (hub.folder / "hub.log").read_text()
    secrets = [(hub.run / name).read_text().strip() for name in ("password", "admin-password", "cookie_secret")]
    secrets += [pool["keys"]["secret"], pool["agent_secret"], pool["token"]]
    assert [secret for secret in secrets if secret in shown] == []
    assert hub.run.stat().st_mode & 0o077 == 0


def test_the_pools_state_is_for_those_who_may_use_it_and_names_nobody_else(hub: Hub) -> None:
    for user in ("ada", "carol"):
        hub.start_server(user)
    with Kernel(hub, "ada") as kernel:
        token = kernel.run("import os; print(os.environ['JUPYTERHUB_API_TOKEN'])").strip()
    picture = hub.api("GET", "/api/status", token=token, base="/services/bulletin")
    assert picture["kind"] == "picture"
    assert {one["user"] for one in picture["slots"] + picture["recent"] if one.get("user")} <= {"ada", "someone else"}
    with Kernel(hub, "carol") as kernel:
        token = kernel.run("import os; print(os.environ['JUPYTERHUB_API_TOKEN'])").strip()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        hub.api("GET", "/api/status", token=token, base="/services/bulletin")


PRINT_TOKEN = "import os; print(os.environ['JUPYTERHUB_API_TOKEN'])"
#: A cell that an admin's notebook from the net may have: it stops everybody, if it can.
DRAIN = (
    "import subprocess, sys; said = subprocess.run([sys.executable, '-m', 'gpu_worker.cli', 'drain', 'a-node'], "
    "capture_output=True, text=True); print(said.stdout + said.stderr)"
)


def test_code_in_an_admins_notebook_server_has_no_admins_rights_and_a_token_made_for_it_has(hub: Hub) -> None:
    hub.start_server("ada")
    hub.start_server("admin")
    with Kernel(hub, "ada") as ada, Kernel(hub, "admin") as admin:
        ada.run("%%remote\nprint('ada was here')")
        assert "Only admins drain nodes, and by a token of the hub with the scope" in admin.run(DRAIN)
        assert "ada" not in str(status_for(hub, admin.run(PRINT_TOKEN).strip()))
        asked = {"note": "to manage the pool", "expires_in": 3600, "scopes": [ACCESS_SCOPE, ADMIN_PAGE_SCOPE]}
        token = hub.api("POST", "/users/admin/tokens", asked)["token"]
        assert "ada" in str(status_for(hub, token))
        said = admin.run(f"import os; os.environ['JUPYTERHUB_API_TOKEN'] = {token!r}\n{DRAIN}")
        assert "There is no node 'a-node' in this pool" in said


def test_an_admin_who_logs_in_sees_on_the_page_who_uses_the_pool(hub: Hub) -> None:
    hub.start_server("ada")
    with Kernel(hub, "ada") as ada:
        ada.run("%%remote\nprint('ada was here')")
    assert "<td>ada</td>" in page_for(hub, "admin", (hub.run / "admin-password").read_text())
    assert "<td>ada</td>" not in page_for(hub, "bob", (hub.run / "password").read_text())


def status_for(hub: Hub, token: str) -> dict[str, object]:
    """What the page says to a program that has this token."""
    picture: dict[str, object] = hub.api("GET", "/api/status", token=token, base="/services/bulletin")
    return picture


def page_for(hub: Hub, user: str, password: str) -> str:
    """Log in as a browser does, and read the page."""
    cookies = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    browser.open(f"{hub.address}/hub/login").close()
    xsrf = next(cookie.value for cookie in cookies if cookie.name == "_xsrf")
    form = urllib.parse.urlencode({"username": user, "password": password, "_xsrf": xsrf}).encode()
    browser.open(f"{hub.address}/hub/login?next=%2Fhub%2Ftoken", form).close()
    with browser.open(f"{hub.address}/services/bulletin/") as page:
        text: str = page.read().decode()
    return text
