"""What several test modules share stands in a module beside them: importing a test module takes its fixtures along."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def imported_modules(file: Path) -> set[str]:
    """The modules that a file imports names from, wherever in it."""
    nodes = [one for one in ast.walk(ast.parse(file.read_text())) if isinstance(one, ast.ImportFrom) and one.module]
    return {one.module or "" for one in nodes} | {f"{one.module}.{name.name}" for one in nodes for name in one.names}


def test_no_test_module_is_imported() -> None:
    own = {".".join(("tests", *file.relative_to(TESTS).with_suffix("").parts)): file for file in TESTS.rglob("*.py")}
    material = TESTS / "notebooks" / "material"
    for name, file in own.items():
        if material not in file.parents:
            shared = {one for one in imported_modules(file) & set(own) if one.rpartition(".")[2].startswith("test_")}
            assert not shared, f"{name} imports from {', '.join(sorted(shared))}"
