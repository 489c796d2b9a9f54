"""The notebooks of the zoo, one for each library or way of using one, and the libraries that each needs."""

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from tests.notebooks.percent import BadMaterial, Cell, read

MATERIAL = Path(__file__).with_name("material")
_NEEDS = re.compile(r"^# needs: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Specimen:
    """A notebook. Its first needed module is that of the library that it is about."""

    name: str
    needs: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def missing(self) -> list[str]:
        """Modules that this environment does not have."""
        return [module for module in self.needs if importlib.util.find_spec(module) is None]


def names() -> list[str]:
    """All notebooks, by name."""
    return sorted(path.stem for path in MATERIAL.glob("*.py"))


def specimen(name: str) -> Specimen:
    """The notebook of this name; its text cell says what it needs. Raises BadMaterial."""
    path = MATERIAL / f"{name}.py"
    found = _NEEDS.search(path.read_text(encoding="utf-8"))
    if found is None:
        raise BadMaterial(f"{path.name} has no line `# needs: MODULE, MODULE`")
    needs = tuple(word.strip() for word in found[1].split(","))
    return Specimen(name, needs, tuple(read(path).cells))
