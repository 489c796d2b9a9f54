# %% [markdown]
# needs: transformers, tokenizers

# %%
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
raw = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1, "a": 2, "cat": 3}, unk_token="[UNK]"))
raw.pre_tokenizer = pre_tokenizers.Whitespace()
fast = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="[UNK]", pad_token="[PAD]")
print(fast("a cat sat")["input_ids"])

# %%
fast.add_tokens(["sat"])
both = (fast, fast)
print(fast("a cat sat")["input_ids"], len(fast))

# %%
enc = fast(["a", "a cat"], padding=True)
print(enc["attention_mask"], enc.word_ids(1))

# %%
fast.padding_side = "left"
fast.add_special_tokens({"sep_token": "[SEP]"})
print(fast(["a", "a cat"], padding=True)["input_ids"], both[0] is both[1], fast.sep_token_id)

# %%
print(fast.decode([2, 3]), enc.tokens(0), fast.all_special_tokens)
