# %% [markdown]
# needs: markdown_it

# %%
from markdown_it import MarkdownIt
md = MarkdownIt("commonmark", {"html": False}).enable("table")
tokens = md.parse("# T\n\n* a\n* b")
print(md.render("**x** <b>"), len(tokens))

# %%
def shout(self, tokens, idx, options, env):
    return tokens[idx].content.upper()
md.add_render_rule("text", shout)
print(md.render("hi *there*"))

# %%
tokens[0].attrSet("id", "top")
md.options["html"] = True
print(md.renderer.render(tokens, md.options, {}), md.render("<i>q</i>"))

# %%
md.disable("emphasis")
alias = tokens[1].children
alias[0].content = "changed"
print(md.render("*no*"), md.renderer.render(tokens, md.options, {})[:40])

# %%
print(tokens[0].attrs, "emphasis" in md.get_active_rules()["inline"], tokens[1].children is alias)
