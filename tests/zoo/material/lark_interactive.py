# %% [markdown]
# needs: lark

# %%
from lark import Lark, Token
p = Lark('start: WORD+\nWORD: /\\w+/\n%ignore " "', parser="lalr")
words = []
steps = p.parse_interactive("a b c")
print(sorted(steps.accepts()))

# %%
for token in steps.iter_parse():
    words.append(token)
print(words, type(words[0]).__name__)

# %%
words[0] = words[0].update(value="changed")
result = steps.feed_eof()
print(words[0], words[0].type, result)

# %%
result.children.reverse()
print(result, isinstance(result.children[0], Token))
