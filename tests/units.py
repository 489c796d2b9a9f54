"""The units of systemd that the project ships, read as systemd reads them."""

from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "deploy" / "systemd"


def read_unit(name: str) -> dict[str, dict[str, list[str]]]:
    """The settings of a unit by section, each with its values in order; a line without "=" is an error."""
    sections: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    section = ""
    for line in (FOLDER / name).read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line.strip() and not line.startswith(("#", ";")):
            key, equals, value = line.partition("=")
            assert equals, f"{name}: {line}"
            sections[section][key].append(value)
    return sections
