# %% [markdown]
# needs: lark

# %%
from lark import Lark, Transformer, Tree, v_args
grammar = r"""
start: sum
?sum: product | sum "+" product -> add
?product: NUMBER -> number | product "*" NUMBER -> mul
%import common.NUMBER
%import common.WS
%ignore WS
"""
parser = Lark(grammar, parser="lalr")
tree = parser.parse("1 + 2 * 3")
print(tree.pretty())

# %%
@v_args(inline=True)
class Sum(Transformer):
    calls = 0
    def number(self, n):
        Sum.calls += 1
        return int(n)
    def add(self, a, b):
        return a + b
    def mul(self, a, b):
        return a * int(b)
    def start(self, x):
        return x
print(Sum().transform(tree), Sum.calls)

# %%
tree.children[0].data = "mul"
alias = tree.children
print(tree.data, alias[0].data, Sum.calls)

# %%
alias.append(Tree("extra", []))
print(len(tree.children), parser.parse("4*5") == parser.parse("4 * 5"), tree.children is alias)

# %%
# raises: UnexpectedToken
parser.parse("1 + + 2")
