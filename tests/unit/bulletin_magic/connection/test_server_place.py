"""The place that the hub has reserved for a server: who of its notebooks has it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bulletin_magic.connection.server_place import ServerPlace

_CLAIM = """
import os
from bulletin_magic.connection.server_place import ServerPlace
place = ServerPlace.claim(os.environ)
print(place and (place.kernel, place.take_request(), place.take_request(), place.options))
"""


def claim_elsewhere(folder: Path, name: str) -> str:
    """What another kernel of the server gets, which ends at once."""
    environ = {**os.environ, "TMPDIR": str(folder), "BULLETIN_PLACE": name, "BULLETIN_PLACE_OPTIONS": "--keep=1h"}
    ran = subprocess.run([sys.executable, "-c", _CLAIM], env=environ, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_one_kernel_at_a_time_has_it_and_the_first_takes_up_what_was_reserved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert claim_elsewhere(tmp_path, "server-1") == "('server-1', 'server-1', None, '--keep=1h')"
    assert claim_elsewhere(tmp_path, "server-1") == "(None, None, None, '--keep=1h')", (
        "one that was restarted asks anew"
    )
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = ServerPlace.claim({"BULLETIN_PLACE": "server-2"})
    assert mine is not None
    assert claim_elsewhere(tmp_path, "server-2") == "None", "another notebook has it"


@pytest.mark.parametrize("name", ["", "../x", "a/b", "x" * 129])
def test_a_name_that_the_hub_does_not_give_is_none(name: str) -> None:
    assert ServerPlace.claim({"BULLETIN_PLACE": name}) is None


def test_a_link_that_somebody_else_has_put_there_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "bulletin-server-3").symlink_to(tmp_path / "other")
    assert ServerPlace.claim({"BULLETIN_PLACE": "server-3"}) is None
    assert not (tmp_path / "other").exists()
