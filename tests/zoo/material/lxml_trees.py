# %% [markdown]
# needs: lxml

# %%
from lxml import etree
root = etree.fromstring("<a><b n='1'>t</b><c/></a>")
b = root[0]
print(etree.tostring(root), b.getparent() is root)

# %%
b.set("n", "2")
etree.SubElement(root, "d").text = "new"
print(etree.tostring(root), root[0] is b)

# %%
find = etree.XPath("//b/@n")
print(find(root))

# %%
style = etree.XSLT(etree.XML('<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><r/></xsl:template></xsl:stylesheet>'))
print(str(style(root)).strip().splitlines()[-1])

# %%
b.text = "changed"
print(root.findtext("b"), find(root))
