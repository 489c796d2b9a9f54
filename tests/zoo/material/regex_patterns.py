# %% [markdown]
# needs: regex

# %%
import regex, re
word = regex.compile(r"(?P<w>\p{L}+)(?:\s+(?P<w>\p{L}+))*", regex.V1)
found = word.fullmatch("Ähre uno dos")
print(found.captures("w"))

# %%
fuzzy = regex.compile(r"(?:colour){e<=1}")
held = [word, fuzzy]
print(fuzzy.fullmatch("color").fuzzy_counts, held[0] is word)

# %%
words = regex.compile(r"\L<names>", names=["ann", "bob"])
print(words.findall("ann and bob"), found.group("w"))

# %%
class Lexer:
    rules = {"num": regex.compile(r"\d++"), "id": re.compile(r"[a-z]\w*")}
    def kinds(self, text):
        return [k for part in text.split() for k, r in self.rules.items() if r.fullmatch(part)]
lexer = Lexer()
print(lexer.kinds("ab 12 c3"))

# %%
Lexer.rules["num"] = held[0]
print(lexer.kinds("ab 12"), words.named_lists, held[0].pattern == word.pattern)

# %%
# raises: error
regex.compile("(")
