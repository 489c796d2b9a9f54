"""The docs are true: generated pages are fresh, links lead somewhere, and nothing of a machine stands in them."""

import importlib.util
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
PAGES = sorted([*HERE.glob("*.md"), *(HERE / "docs").rglob("*.md")])


def generator():  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location("generate", HERE / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", list(generator().PAGES))
def test_a_generated_page_is_as_the_code_says(page: str) -> None:
    made = generator().PAGES[page]()
    assert (HERE / "docs" / page).read_text() == made, "run: python docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HERE)))
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


def test_the_changelog_says_each_thing_once() -> None:
    entries = [line[:60] for line in (HERE / "CHANGELOG.md").read_text().splitlines() if line.startswith("* ")]
    assert sorted(entries) == sorted(set(entries))


def test_every_option_setting_and_error_is_documented() -> None:
    from bulletin import errors
    from bulletin_magic.commands.options import BACKGROUND, FLAGS, RESOURCE_OPTIONS, RUN_OPTIONS
    from gpu_worker.config import Pool

    reference = (HERE / "docs/reference/gpu-magic.md").read_text()
    assert [name for name in (*RESOURCE_OPTIONS, *RUN_OPTIONS, *FLAGS, BACKGROUND) if name not in reference] == []
    reference = (HERE / "docs/reference/errors.md").read_text()
    bugs_of_ours = {"IllegalMove", "InvariantBroken"}
    for_people = [name for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    assert [name for name in for_people if name not in reference and name not in bugs_of_ours] == []
    for name, trait in Pool.class_traits(config=True).items():
        assert len(trait.help) > 20, f"Pool.{name} has no help"
