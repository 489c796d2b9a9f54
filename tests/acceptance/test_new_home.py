"""What a newcomer finds at home on the hub of `make.py run`: each notebook there runs whole, in a browser."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.conftest import tab
from tests.acceptance.hub import REPOSITORY, Hub
from tests.acceptance.lab import DONE, Lab, Notebook

pytestmark = pytest.mark.browser

EXAMPLES = REPOSITORY / "examples"

#: Each notebook of a new home: what can be read in it when it has run, in this order, and the number of its pictures.
EXPECTED = {
    "background_training": (
        [
            r"train: ✓ ran .* on a CPU slot",
            r"400 epochs, loss 0\.0\d\d",
            r"train: .*\s+ended: (False|True)",
            r"accuracy: (9\d\.\d|100\.0)%",
            r"compare: ✓ ran .* on a CPU slot",
            r"best was changed in the notebook while compare ran",
            r"here: whatever I say\s+there: the larger network",
        ],
        3,
    ),
    "every_cell": (
        [
            r"From the next cell on, every cell runs on the pool",
            r"\d\d words\s+counting them is right for \d\d\.\d%",
            r"training:\s+100%",
            r"10/10",
            r"the film is great\s+good\s+[01]\.\d",
            r"the film is not great\s+bad\s+[01]\.\d",
            r"i found the music not dull\s+good\s+[01]\.\d",
            r"Cells of this notebook run here again",
            r"they say the ending is boring\s+bad\s+[01]\.\d",
        ],
        1,
    ),
    "first_cell": (
        [
            r"1347 pictures to learn from, 450 to test with",
            r"training:\s+100%",
            r"the loss fell from 2\.\d\d to 0\.\d\d",
            r"accuracy: 9\d\.\d% of 450 pictures it had never seen",
        ],
        2,
    ),
    "gpu_in_a_class": (
        [
            r"round 1: 0\.\d{4}\s+round 2: 0\.\d{4}",
            r"good enough after \d rounds",
            r"not good enough yet\s+best: (0\.\d{4}), its copy: \1, last: 0\.\d{4}",
            r"that was enough after 3 rounds",
        ],
        1,
    ),
    "sweep": (
        [
            r"12 combinations",
            r"12 of 12 done",
            r"3 of 3 done, 1 failed",
            r"linear: 0\.9\d\d\s+cubic: failed, InvalidParameterError\s+poly: 0\.9\d\d",
            r"6 of 6 done",
            r"0\.9\d\d ± 0\.0\d\d",
            r"accuracy: 9\d\.\d%",
        ],
        1,
    ),
}


@pytest.fixture(scope="module")
def home(hub: Hub) -> Iterator[Lab]:
    """JupyterLab of somebody who has never been here, in a window that shows a notebook whole."""
    with tab(1180, 5000) as page:
        yield Lab(hub, page, "newcomer")


@pytest.fixture(scope="module", autouse=True)
def found_at_first(home: Lab) -> list[str]:
    """The notebooks of the home before any test has added one."""
    return home.notebooks()


def test_a_new_home_holds_the_notebooks_that_run_there_and_no_others(found_at_first: list[str]) -> None:
    assert found_at_first == [f"{name}.ipynb" for name in sorted(EXPECTED)]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_notebook_of_a_new_home_runs_from_top_to_bottom(home: Lab, name: str) -> None:
    words, pictures = EXPECTED[name]
    with Notebook(home, f"{name}.ipynb").open() as notebook:
        notebook.start_all()
        notebook.wait_all()
        cells = notebook.code_cells()
        assert [text for cell in cells for text in _complaints(cell)] == []
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
        shown = notebook.panel.locator(".jp-Cell-outputArea")
        expect(shown.locator(".jp-OutputArea-output img")).to_have_count(pictures)
        read = "\n".join(shown.all_inner_texts()).replace("\N{FIGURE SPACE}", " ")
        assert re.search(".*?".join(f"(?:{one})" for one in words), read, re.DOTALL), read


def test_a_notebook_about_torch_asks_before_it_installs_it_and_ends_in_one_sentence_without(home: Lab) -> None:
    for name in ("fine_tuning", "image_classifier"):
        cells = json.loads((EXAMPLES / "torch" / f"{name}.ipynb").read_text())["cells"]
        asking = "".join(next(cell for cell in cells if cell["cell_type"] == "code")["source"])
        with home.notebook(name, "import sys\nsys.modules['torch'] = None", asking, "'went on'") as notebook:
            notebook.start_all()
            box = notebook.output(1).locator("input.jp-Stdin-input")
            expect(notebook.output(1)).to_contain_text("Enter installs it, n stops here")
            box.fill("n")
            box.press("Enter")
            notebook.wait_all()
            expect(notebook.cell(1).locator(".jp-InputPrompt")).to_have_text(DONE)
            expect(notebook.output(1)).to_contain_text("The notebook ends here, since it has no torch.")
            assert "Traceback" not in notebook.output(1).inner_text()
            assert [cell["execution_count"] for cell in notebook.code_cells()] == [1, 2, None]


def _complaints(cell: dict[str, Any]) -> Iterator[str]:
    """Errors that stand under a cell, and what is on stderr."""
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            yield f"{output['ename']}: {output['evalue']}"
        elif output.get("name") == "stderr":
            yield output["text"]
