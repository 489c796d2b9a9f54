"""Random calls of the REST API by its OpenAPI document. A pool of their own: an admin's change what there is."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.hub import Hub
from tests.acceptance.played_pool import played_pool

#: Of each endpoint. Whoever is nobody is turned away before anything of a call is read.
EXAMPLES = {"nobody": 3, "ada": 15, "admin": 15}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with played_pool(tmp_path_factory.mktemp("random")) as (hub, pool):
        hub.make_user("admin")
        pool.add_node("gpu01", 2)
        for user in ("ada", "bob", "eve", "vic"):
            pool.ask(user, f"of {user}")
        yield hub


@pytest.mark.parametrize("role", EXAMPLES)
def test_random_calls_by_the_openapi_document_are_answered_as_it_says(hub: Hub, role: str, tmp_path: Path) -> None:
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{hub.address}/services/bulletin/api/v1/openapi.json",
        f"--url={hub.address}/services/bulletin/api/v1",
        f"--checks={checks}",
        "--phases=examples,coverage,fuzzing",
        f"--max-examples={EXAMPLES[role]}",
        "--generation-database=none",
        "--seed=1",
        "--no-color",
    ]
    if role != "nobody":
        command += ["--header", f"Authorization: token {hub.token_of(role)}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
