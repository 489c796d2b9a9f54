# %% [markdown]
# needs: lxml

# %%
from lxml import etree, html
page = html.document_fromstring("<!DOCTYPE html><html><body><p class='a' @click='x'>one<br>two</p><!-- c --><form><input name=q value=1></form></body></html>")
first = page.find(".//p")
form = page.forms[0]
tree = page.getroottree()
print(html.tostring(page), type(form).__name__, tree.docinfo.doctype)

# %%
first.set("class", "b")
first.addnext(html.fragment_fromstring("<b>new</b>"))
form.fields["q"] = "2"
print(html.tostring(tree), page.cssselect("p") if False else page.xpath("//p/@class"))

# %%
print(first.getparent() is page.body, first.getroottree().getroot() is page, form.fields["q"], page.body[1].text)
wrapper = etree.SubElement(page.body, "div")
wrapper.append(first)
print(html.tostring(page.body))

# %%
first.drop_tree()
print(len(page.body), first.getparent(), html.tostring(first), tree.getroot() is page, wrapper.getparent() is page.body)

# %%
doc = etree.fromstring(b"<?xml version='1.0' encoding='UTF-8'?><?go on?><!-- top --><x:a xmlns:x='urn:x' xmlns='urn:d' x:k='v'>t<b><![CDATA[<raw>]]></b>tail<x:c xmlns:y='urn:y' y:z='1'/></x:a><!-- end -->")
leaf = doc[1]
whole = doc.getroottree()
print(etree.tostring(whole), leaf.nsmap)

# %%
leaf.tail = "behind"; doc[0].tail = None
doc.insert(0, leaf)
print(etree.tostring(whole), doc.xpath("y:q|x:c", namespaces={"x": "urn:x", "y": "urn:y"})[0] is leaf)

# %%
text = doc.xpath("//text()")
print([str(t) for t in text], text[1].getparent() is leaf, [n.tag for n in doc.iter("*")], etree.tostring(whole.getroot().getprevious()))
