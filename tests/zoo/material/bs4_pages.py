# %% [markdown]
# needs: bs4

# %%
from bs4 import BeautifulSoup
soup = BeautifulSoup("<ul class='a b'><li>one</li><li id='x'>two <b>bold</b></li></ul>", "html.parser")
item = soup.find(id="x")
items = soup.find_all("li")
print(item.b.string, items[1] is item)

# %%
item.b.string = "BOLD"
item["class"] = ["new"]
print(soup, items[1]["class"])

# %%
new = soup.new_tag("li")
new.string = "three"
soup.ul.append(new)
print(len(soup.select("ul > li")), new.parent is soup.ul, new.previous_sibling is item)

# %%
items[0].decompose()
print(soup.get_text("|"), items[0].decomposed)

# %%
text = item.contents[0]
text.replace_with("deux ")
print(soup.ul.prettify(), text.parent, item.find_next("li") is new)
