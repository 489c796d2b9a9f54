"""The hub of `make.py run`: this computer only, one shared password, everything it keeps in one folder.

A real hub takes two lines from here: `from bulletin_spawner.setup import configure`, and the call at the end.
"""

import os
import secrets
from pathlib import Path

from bulletin_spawner.ports import find_free_ports
from bulletin_spawner.setup import configure

c = get_config()
here = Path(__file__).parent.resolve()
run = Path(os.environ.get("BULLETIN_RUN", here / ".run")).resolve()
run.mkdir(mode=0o700, parents=True, exist_ok=True)
run.chmod(0o700)


def password(name: str, size_bytes: int) -> str:
    """Return a random password, made once and kept in a file that only this user can read."""
    path = run / name
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(size_bytes))
    return path.read_text()


# The port from BULLETIN_PORT or 8000, or the next free one; 0 takes any. Only this computer can connect.
wanted = int(os.environ.get("BULLETIN_PORT", "8000"))
port, proxy_api_port, hub_port = find_free_ports([wanted, 8001, 8081] if wanted else [0, 0, 0])
address = f"http://127.0.0.1:{port}"
c.JupyterHub.bind_url = address
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{proxy_api_port}"
c.ConfigurableHTTPProxy.command = [str(here / "node_modules" / ".bin" / "configurable-http-proxy")]
(run / "address").write_text(address)

# What the hub keeps.
c.ConfigurableHTTPProxy.pid_file = str(run / "proxy.pid")
c.JupyterHub.db_url = f"sqlite:///{run / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(run / "cookie_secret")

# Who may come in: any name with the one password, and `admin` with another.
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = password("password", 9)
c.SharedPasswordAuthenticator.admin_password = password("admin-password", 32)
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {"admin"}
c.Authenticator.username_pattern = r"[a-z0-9][a-z0-9._-]{0,31}"  # it becomes the name of a folder

# Their servers: processes of this user, at home in this folder. A new home holds the notebooks that run on what
# `make.py run` installs; those of examples/torch need more, and stay there.
c.JupyterHub.spawner_class = "bulletin_spawner.spawner.BulletinSpawner"
c.BulletinSpawner.home_dir_template = str(run / "homes" / "{username}")
c.BulletinSpawner.examples_folder = str(here / "examples")
c.Spawner.default_url = "/lab"
# A terminal's login shell would set PATH anew, and not find `bulletin` and `python` of this environment.
shell = {"shell_command": [os.environ.get("SHELL") or "sh"]}
c.Spawner.args = [f"--ServerApp.terminado_settings={shell}"]
c.Spawner.start_timeout = c.Spawner.http_timeout = 180  # Python compiles all of JupyterLab when it first starts

# Whoever knows the password is trusted with everything of whoever runs this hub: so is what runs in the admin's server.
configure(c, folder=run / "pool", isolation="shared", manage_from_servers=True, port=0)
