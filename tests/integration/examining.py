"""`bulletin doctor` for tests: a process of its own, whose answer is read as programs read it."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.clean_environ import clean_environ

ROOT = Path(__file__).parents[2]
PROXY = ROOT / "node_modules" / ".bin" / "configurable-http-proxy"
#: The beginning of a hub's file that is right as far as it goes: ports that nobody has, and the proxy.
HUB = f"""\
from bulletin_spawner.ports import find_free_ports
from bulletin_spawner.setup import configure

c = get_config()
ports = find_free_ports([0, 0, 0])
c.JupyterHub.bind_url, c.JupyterHub.hub_bind_url, c.ConfigurableHTTPProxy.api_url = [
    f"http://127.0.0.1:{{port}}" for port in ports
]
c.ConfigurableHTTPProxy.command = [{str(PROXY)!r}]
c.Authenticator.allow_all = True
"""


class Examined(NamedTuple):
    """What doctor found: its exit status, and each diagnosis by its word."""

    status: int
    found: dict[str, dict[str, Any]]
    not_looked_at: list[str]

    @property
    def wrong(self) -> list[str]:
        """The words of what is wrong; the rest is advice."""
        return sorted(word for word, one in self.found.items() if one["level"] == "wrong")

    def says(self, word: str) -> str:
        """All three sentences of a diagnosis. Each says something."""
        assert word in self.found, f"found only {self.found}"
        sentences = [self.found[word][part] for part in ("what", "why", "remedy")]
        assert all(len(sentence) > 10 and "\n" not in sentence for sentence in sentences), sentences
        return " ".join(sentences)


def examine(*words: object, under: Sequence[str] = (), **environ: str) -> Examined:
    """Have doctor look, in an environment without any hub but for `environ`; `under` is a command that starts it."""
    command = [*under, sys.executable, "-P", "-m", "gpu_worker.cli", "doctor", "--json", *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=clean_environ() | environ, timeout=240, cwd="/", check=False
    )
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    return Examined(done.returncode, {one["check"]: one for one in said["diagnoses"]}, said["not_looked_at"])
