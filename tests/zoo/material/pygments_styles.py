# %% [markdown]
# needs: pygments

# %%
from pygments import highlight, lexers, formatters, token
from pygments.lexer import RegexLexer
from pygments.style import Style
lexer = lexers.get_lexer_by_name("python", stripall=True)
out = highlight("x = 1", lexer, formatters.NullFormatter())
print(out, token.Token.Name is token.Name)

# %%
class ZooLexer(RegexLexer):
    name = "zoo"
    tokens = {"root": [(r"\d+", token.Number), (r"\s+", token.Text), (r"\w+", token.Name)]}
zl = ZooLexer()
pieces = list(zl.get_tokens("ab 12"))
print(pieces)

# %%
class Quiet(Style):
    styles = {token.Name: "bold #ff0000", token.Number: "italic"}
print(pieces[0][0] is token.Name, pieces[0][0] in token.Name, Quiet.style_for_token(token.Name)["color"])

# %%
f = formatters.HtmlFormatter(style=Quiet, nowrap=True)
print(highlight("ab 12", zl, f), token.Name.Zoo is token.Name.Zoo)

# %%
kinds = {token.Name: 1, token.Number: 2}
print([kinds.get(k) for k, _ in zl.get_tokens("c 3")], f.style is Quiet)

# %%
# raises: ClassNotFound
lexers.get_lexer_by_name("no-such")
