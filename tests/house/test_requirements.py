"""What an environment is made of is what was locked: each package has its version and the hashes of its builds."""

import re

import pytest

from tests.house.packages import ROOT

ENTRY = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==\S+( ; [^\\\n]+)? \\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+", re.MULTILINE
)


@pytest.mark.parametrize("file", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda file: file.stem)
def test_each_package_has_its_version_and_hashes_and_nothing_says_where_it_is_from(file) -> None:  # type: ignore[no-untyped-def]
    text = file.read_text()
    assert len(list(ENTRY.finditer(text))) > 100
    assert ENTRY.sub("", text) == ""
    assert "://" not in text


def test_nothing_is_installed_whose_hash_is_another() -> None:
    installs = (ROOT / "making" / "python_environments.py").read_text()
    (line,) = [line for line in installs.splitlines() if '"-r", wanted' in line]
    assert "--require-hashes" in line
