# %% [markdown]
# # Fine-tuning as in the course of Hugging Face, with a model, a tokenizer and data that are made here

# %%
# compare: no, what libraries warn of when they are imported
# state: no trainer, it has times
# state: no special, it keeps words in no order
import numpy as np, torch, transformers
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, DataCollatorWithPadding, PreTrainedTokenizerFast
from transformers import GPT2Config, GPT2LMHeadModel, TextStreamer, Trainer, TrainerCallback, TrainingArguments, pipeline
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
transformers.logging.set_verbosity_error()
transformers.set_seed(0)

# %%
good, bad, other = ["good", "great", "nice"], ["bad", "awful", "sad"], ["the", "movie", "was", "so", "a", "plot"]
rng = np.random.default_rng(0)
def sentence(label):
    words = [*rng.choice(other, 4), rng.choice(good if label else bad)]
    rng.shuffle(words)
    return " ".join(map(str, words))
labels = [int(n) for n in rng.integers(0, 2, 96)]
raw = Dataset.from_dict({"text": [sentence(label) for label in labels], "label": labels})
raw

# %%
trained = Tokenizer(models.WordLevel(unk_token="[UNK]"))
trained.pre_tokenizer = pre_tokenizers.Whitespace()
special = trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]"], show_progress=False)
trained.train_from_iterator(raw["text"], special)
tokenizer = PreTrainedTokenizerFast(tokenizer_object=trained, unk_token="[UNK]", pad_token="[PAD]")
dict(tokenizer("the movie was nonsense"))

# %%
tokenizer.add_tokens(["plots"])
tokenizer.tokenize("the plots was sad"), len(tokenizer)

# %%
# compare: no, a bar
data = raw.map(lambda rows: tokenizer(rows["text"]), batched=True, remove_columns=["text"])

# %%
data = data.rename_column("label", "labels").train_test_split(0.25, seed=1)
data.set_format("torch")
data["train"][0]

# %%
loader = torch.utils.data.DataLoader(data["train"], 8, collate_fn=DataCollatorWithPadding(tokenizer), num_workers=2)
{name: part.shape for name, part in next(iter(loader)).items()}

# %%
config = BertConfig(
    vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=16,
)
model = BertForSequenceClassification(config)
model.num_parameters(), model.config is config

# %%
class Steps(TrainerCallback):
    def __init__(self):
        self.seen = []
    def on_log(self, args, state, control, logs=None, **_):
        self.seen.append((state.global_step, sorted(logs)))
steps = Steps()
def accuracy(found):
    return {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())}

# %%
args = TrainingArguments(
    "run", per_device_train_batch_size=8, num_train_epochs=2, eval_strategy="epoch", save_strategy="epoch", logging_steps=4,
    learning_rate=0.01, report_to="none", use_cpu=True, disable_tqdm=True, load_best_model_at_end=True,
)
trainer = Trainer(
    model, args, train_dataset=data["train"], eval_dataset=data["test"], compute_metrics=accuracy, callbacks=[steps],
    data_collator=DataCollatorWithPadding(tokenizer),
)
trainer.model is model, trainer.accelerator.state.device

# %%
# compare: no, times
trainer.train();

# %%
trainer.state.global_step, [round(row["loss"], 4) for row in trainer.state.log_history if "loss" in row], steps.seen

# %%
# compare: no, times
args.num_train_epochs = 3
trainer.train(resume_from_checkpoint=True);

# %%
trainer.state.epoch, trainer.model is model, trainer.optimizer.optimizer is not None

# %%
found = trainer.predict(data["test"])
round(found.metrics["test_accuracy"], 3), found.predictions.round(3)[:2]

# %%
# compare: no, a bar
# state: no found, it has times
model.save_pretrained("saved")
again = BertForSequenceClassification.from_pretrained("saved")

# %%
all(torch.equal(one, other) for one, other in zip(again.parameters(), model.parameters()))

# %%
judge = pipeline("text-classification", model=again, tokenizer=tokenizer)
[answer["label"] for answer in judge(["the movie was great", "a sad plot"])], judge.model is again

# %%
again.config.id2label = {0: "bad", 1: "good"}
[answer["label"] for answer in judge(["the movie was great", "a sad plot"])]

# %%
writer = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=16, n_embd=16, n_layer=1, n_head=2))
writer.lm_head.weight is writer.transformer.wte.weight

# %%
prompt = tokenizer("the movie", return_tensors="pt", return_token_type_ids=False)
_ = writer.generate(**prompt, max_new_tokens=5, do_sample=False, pad_token_id=1, streamer=TextStreamer(tokenizer))

# %%
with torch.no_grad():
    writer.transformer.wte.weight.zero_()
writer.lm_head.weight.abs().sum().item(), writer.lm_head.weight is writer.transformer.wte.weight

# %%
# parametrized, as some models of speech are
layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
type(layer).__name__, [name for name, _ in layer.named_parameters()]

# %%
layer(torch.ones(1, 2)).shape, type(layer).__name__

# %%
import shutil
shutil.rmtree("run")  # its files have times
