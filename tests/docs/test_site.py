"""The pages make a site: nothing leads nowhere, nothing comes from elsewhere, and each page is in the menu."""

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_site_is_built_without_a_warning_and_has_every_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--quiet", "-W", "--keep-going", "-b", "html", "-d", tmp_path / "read"]
    done = subprocess.run([*command, DOCS, tmp_path / "site"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    site = tmp_path / "site"
    pages = [page for page in DOCS.rglob("*.md") if "_site" not in page.parts]
    home = (site / "index.html").read_text()
    menu = set(re.findall(r'class="reference internal" href="([^"#]+)"', home[home.index("sidebar-tree") :]))
    names = {str(page.relative_to(DOCS).with_suffix(".html")) for page in pages} - {"index.html"}
    assert names - menu == set()
    assert {name for name in names if not (site / name).exists()} == set()
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', home)
    assert loaded == []
