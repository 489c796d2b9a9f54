"""Which pages there are: a row for each, whose script fills it with what the REST API says. Pure."""

import hashlib
from pathlib import Path

import msgspec

from bulletin_spawner.service.viewer import Role


class ShellPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the service."""

    name: str  #: as its script knows it
    path: str  #: below the service's prefix
    title: str
    #: Who finds it in the menu. What is on it is decided by what the API says to its reader.
    role: Role = "user"


#: In the order of the menu. The script has one for each in frontend/pages/src/pages.ts.
PAGES = (
    ShellPage(name="now", path="", title="Now"),
    ShellPage(name="me", path="me", title="Me"),
    ShellPage(name="project", path="project", title="Project"),
    ShellPage(name="quotas", path="quotas", title="Quotas", role="lead"),
    ShellPage(name="admin", path="admin", title="Admin", role="admin"),
)


class BuiltFiles(msgspec.Struct, frozen=True):
    """The script and the style that npm has built, each with a mark of its content."""

    script: str
    style: str


def find_built(static: Path) -> BuiltFiles | None:
    """Find what was built; None where nothing was: the tables of *Now* are then all there is."""
    marks = []
    for name in ("pages.js", "pages.css"):
        path = static / "built" / name
        if not path.exists():
            return None
        marks.append(f"static/built/{name}?v={hashlib.sha256(path.read_bytes()).hexdigest()[:16]}")
    return BuiltFiles(*marks)
