"""Texts that somebody chooses and a browser would run, in JupyterLab, which runs what is markup: they stay text."""

import pytest
from playwright.sync_api import expect

from tests.acceptance.lab import Lab

pytestmark = pytest.mark.browser

MARKUP = '"><img src=x onerror=pwned=1>'
#: A class whose values cannot travel, and that is called like that.
CLASS = f"""class Left:
    def __reduce__(self): raise ValueError({MARKUP!r})
Left.__name__ = Left.__qualname__ = {MARKUP!r}
kept = Left()
print({MARKUP!r})"""


def test_what_a_browser_would_run_is_text_in_the_panel_and_below_cells(lab: Lab) -> None:
    cells = (
        f"%%gpu --label '{MARKUP}'\n{CLASS}",
        f"%%gpu --label '{MARKUP}'\nraise ValueError({MARKUP!r})",
        f"%%gpu --environment '{MARKUP}'\n1",
        "%gpu vars",
        "%gpu",
        f"%%gpu --label '{MARKUP}' --background job\nimport time\ntime.sleep(600)",
    )
    with lab.notebook(MARKUP, *cells) as notebook:
        page = notebook.page
        panel = page.locator(".bulletin-Panel")
        page.locator(".bulletin-StatusItem").get_by_role("button").click()
        notebook.run(*range(6))
        expect(panel.get_by_role("region", name="Last cells")).to_contain_text(MARKUP)
        expect(panel.get_by_role("region", name="Running")).to_contain_text(MARKUP)
        for number in range(3):
            expect(notebook.output(number).last).to_contain_text("onerror=pwned=1>")
        assert page.locator("img[src=x], [onerror]").count() == 0
        assert page.evaluate("typeof pwned") == "undefined"
