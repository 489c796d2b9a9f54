# %% [markdown]
# needs: tokenizers

# %%
from tokenizers import Tokenizer, models, trainers, pre_tokenizers, normalizers
tok = Tokenizer(models.BPE(unk_token="[UNK]"))
tok.pre_tokenizer = pre_tokenizers.Whitespace()
holder = {"tok": tok}
print(tok.get_vocab_size())

# %%
trainer = trainers.BpeTrainer(vocab_size=40, special_tokens=["[UNK]"], show_progress=False)
tok.train_from_iterator(["low lower lowest", "new newer newest"], trainer)
print(tok.get_vocab_size(), holder["tok"] is tok, holder["tok"].get_vocab_size())

# %%
tok.normalizer = normalizers.Lowercase()
coded = tok.encode("Newest LOW")
print(coded.tokens, coded.ids)

# %%
tok.add_tokens(["zoo"])
tok.enable_padding(length=6)
print(holder["tok"].encode("zoo low").ids, coded.tokens)

# %%
print(tok.decode(coded.ids), tok.padding["length"], tok.token_to_id("zoo"), coded.offsets[0])
