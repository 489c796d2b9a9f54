"""How the pages of this folder become a site: `python3 make.py docs`.

They are written to be read as they are, too: what leads from page to page on the site is what the lists of `index.md`
and `decisions/README.md` name, in their order.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ROOT = Path(__file__).resolve().parents[1]

project = "Bulletin"
author = "the authors of Bulletin"
release = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_site"]
myst_heading_anchors = 4
nitpicky = True

html_theme = "furo"
html_title = "Bulletin"
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e4f", "color-brand-content": "#0b6e4f"},
    "dark_css_variables": {"color-brand-primary": "#5fd3a5", "color-brand-content": "#5fd3a5"},
}
#: The dollar and the prompt of Python are not copied with what one types.
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

#: The pages whose lists say what is on the site.
_LISTS = ("index", "decisions/README")
_GROUP = re.compile(r"^\* \*\*(?P<caption>[^*]+)\*\*: (?P<pages>.*(?:\n  .*)*)", re.MULTILINE)
_FOLDER = re.compile(r"\[(?P<text>[^\]]+)\]\((?:\.\./)+(?:deploy|examples)(?:/\w+)?/?\)")
_PAGE = re.compile(r"\]\((?P<page>[\w/.-]+)\.md\)")


def _add_tables_of_contents(_: Sphinx, name: str, text: list[str]) -> None:
    """Add to a page with lists of others a table of contents of each list, which the site's menu shows."""
    text[0] = _FOLDER.sub(r"`\g<text>`", text[0])  # folders of the checkout, which are none of the site
    if name not in _LISTS:
        return
    groups = [(one["caption"], _PAGE.findall(one["pages"])) for one in _GROUP.finditer(text[0])]
    for caption, pages in groups or [("", _PAGE.findall(text[0]))]:
        words = [f":caption: {caption}"] if caption else []
        text[0] += "\n\n" + "\n".join(["```{toctree}", ":hidden:", *words, "", *pages, "```"]) + "\n"


def setup(app: Sphinx) -> None:
    """Take part in the build."""
    app.connect("source-read", _add_tables_of_contents)
    app.add_lexer("mermaid", TextLexer)  # as text: a library that draws it would come from elsewhere
