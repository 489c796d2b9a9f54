# %% [markdown]
# needs: pyparsing

# %%
import pyparsing as pp
pp.ParserElement.set_default_whitespace_chars(" ")
seen = []
number = pp.Word(pp.nums).set_parse_action(lambda t: (seen.append(t[0]), int(t[0]))[1])
expr = pp.Forward()
atom = number | pp.Suppress("(") + expr + pp.Suppress(")")
expr <<= atom + pp.ZeroOrMore(pp.one_of("+ -") + atom)
print(expr.parse_string("1 + (2 - 3)").as_list())

# %%
pair = pp.Group(pp.Word(pp.alphas)("key") + pp.Suppress("=") + number("value"))
config = pp.ZeroOrMore(pair)
r = config.parse_string("a=1 b=22")
print(r[1].key, r[1]["value"], seen)

# %%
number.add_parse_action(lambda t: t[0] * 10)
print(config.parse_string("c=3").as_list(), expr.parse_string("4").as_list())

# %%
r[0]["value"] = 99
print(r[0].as_dict(), len(seen), expr.parse_string("5")[0])

# %%
# raises: ParseException
number.parse_string("x")
