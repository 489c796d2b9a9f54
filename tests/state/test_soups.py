"""Trees of Beautiful Soup: a tag, a string and the tree that they are in stay the parts of each other on both sides."""

import pytest

from bulletin.errors import CannotReturn

from .notebook import Notebook

PAGE = """
from bs4 import BeautifulSoup
soup = BeautifulSoup("<ul class='a b'><li>one</li><li id='x'>two <b>bold</b></li></ul><p>end</p>", "html.parser")
item, items = soup.find(id="x"), soup.find_all("li")
text = item.b.string
children = item.contents
"""


@pytest.fixture
def page(notebook: Notebook) -> Notebook:
    pytest.importorskip("bs4")
    notebook.local(PAGE)
    return notebook


def test_what_a_cell_changes_in_a_tag_is_changed_in_the_tree_and_the_other_way_round(page: Notebook) -> None:
    page.gpu("item['class'] = ['new']\nitem.append(soup.new_tag('i'))")
    assert page.local("str(soup.ul)").endswith('<li class="new" id="x">two <b>bold</b><i></i></li></ul>')
    assert page.local("items[1] is item and soup.find(id='x') is item and children is item.contents")
    page.gpu("soup.ul.li.decompose()")
    assert page.local("items[0].decomposed, len(soup.find_all('li'))") == (True, 1)
    page.local("item.b.string = 'BOLD'")
    assert page.gpu("soup.get_text('|'), item.b.string").extra["result"] == ("two |BOLD|end", "BOLD")


def test_a_tag_that_a_cell_made_is_in_the_tree_where_it_put_it(page: Notebook) -> None:
    page.gpu("new = soup.new_tag('li')\nnew.string = 'three'\nsoup.ul.append(new)\nalone = soup.new_tag('div')")
    assert page.local("new.parent is soup.ul and new.previous_sibling is item and item.find_next('li') is new")
    assert page.local("alone.parent is None and [tag.name for tag in soup.find_all(True)]") == [
        "ul",
        "li",
        "li",
        "b",
        "li",
        "p",
    ]
    page.gpu("alone.append(new.extract())")
    assert page.local("new.parent is alone and soup.ul.find_all('li') == [items[0], item]")


def test_a_string_of_a_long_page_goes_with_its_tree(notebook: Notebook) -> None:
    pytest.importorskip("bs4")
    notebook.local("""
from bs4 import BeautifulSoup
soup = BeautifulSoup("".join(f"<p>text {n}</p>" for n in range(1500)), "html.parser")
texts = [p.string for p in soup.find_all("p")]
""")
    notebook.gpu("first, last = texts[0].upper(), texts[-1].find_previous('p').string")
    assert notebook.local("first, last is texts[-1], texts[3].parent is soup.contents[3]") == ("TEXT 0", True, True)


def test_a_tree_is_as_it_was_where_a_cell_does_not_come_back(page: Notebook) -> None:
    page.local(
        "class Late:\n    def __setstate__(self, state): raise OSError('not here')\nheld, before = [1], str(soup)"
    )
    with pytest.raises(CannotReturn, match="not here"):
        page.gpu("item.decompose()\nlate = Late.__new__(Late)\nlate.x = 1\nheld.append(late)")
    assert page.local("str(soup) == before and items[1] is item and item.parent is soup.ul and text.parent is item.b")


def test_a_tree_with_a_parser_that_cannot_travel_still_makes_tags(page: Notebook) -> None:
    page.local("soup.builder.picklable = False")
    page.gpu("soup.p.append(soup.new_tag('br'))")
    assert page.local("str(soup.p), soup.builder.soup is soup") == ("<p>end<br/></p>", True)
