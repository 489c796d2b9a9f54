# %% [markdown]
# needs: transformers

# %%
from transformers import BertConfig, PretrainedConfig, GenerationConfig, BatchEncoding
config = BertConfig(hidden_size=32, num_attention_heads=4)
held = [config]
print(config.hidden_size, config.model_type)

# %%
config.hidden_size = 64
config.id2label = {0: "no", 1: "yes"}
print(held[0].hidden_size, held[0] is config, config.num_labels)

# %%
class TinyConfig(PretrainedConfig):
    model_type = "tiny-zoo"
    def __init__(self, width=3, **kwargs):
        self.width = width
        super().__init__(**kwargs)
tiny = TinyConfig(width=9)
print(tiny.to_diff_dict().get("width"), tiny.width)

# %%
gen = GenerationConfig(max_new_tokens=5, temperature=0.5, do_sample=True)
tiny.width += 1
print(tiny.width, gen.max_new_tokens, isinstance(tiny, TinyConfig))

# %%
batch = BatchEncoding({"input_ids": [[1, 2]]})
batch["extra"] = [0]
gen.update(max_new_tokens=7)
print(sorted(batch), gen.max_new_tokens, config.label2id)
