"""A file is one idea, and modules do not import each other in circles."""

import ast

import grimp
import networkx as nx

from tests.house.packages import PACKAGES, ROOT, files, lines, median_lines

LONGEST = 400
MEDIAN = 130


def test_no_file_is_too_long_to_be_one_idea() -> None:
    assert {str(path): lines(path) for path in files() if lines(path) > LONGEST} == {}


def test_most_files_are_short() -> None:
    assert median_lines() <= MEDIAN


def test_no_modules_import_each_other() -> None:
    """Imports for type checkers and inside functions count."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = nx.DiGraph()
    for module in graph.modules:
        imports.add_edges_from((module, imported) for imported in graph.find_modules_directly_imported_by(module))
    assert [sorted(circle) for circle in nx.strongly_connected_components(imports) if len(circle) > 1] == []


def test_no_test_module_imports_another() -> None:
    found = []
    notebooks = ROOT / "tests" / "notebooks" / "material"  # cells, not modules
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.is_relative_to(notebooks):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module and module.startswith("tests.") and module.rpartition(".")[2].startswith("test_"):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} imports {module}")
    assert found == [], "what tests share stands in a module of its own beside them"


def test_unit_tests_mirror_the_packages() -> None:
    unit = ROOT / "tests" / "unit"
    folders = {path.parent.relative_to(unit) for path in unit.rglob("test_*.py")}
    assert sorted(str(folder) for folder in folders if not (ROOT / folder).is_dir()) == []


def in_package(node: ast.ImportFrom, package: str) -> bool:
    return node.level > 0 or f"{node.module}.".startswith(f"{package}.")


def test_a_package_that_offers_names_lists_them() -> None:
    found = []
    for path in files():
        if path.name != "__init__.py":
            continue
        tree = ast.parse((ROOT / path).read_text())
        package = ".".join(path.parent.parts)
        offers = any(isinstance(node, ast.ImportFrom) and in_package(node, package) for node in tree.body)
        lists = any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__" for node in tree.body)
        if offers and not lists:
            found.append(str(path))
    assert found == [], "name in __all__ what the package offers"
