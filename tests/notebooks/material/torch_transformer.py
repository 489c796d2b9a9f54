# %% [markdown]
# # A transformer in 60 lines

# %%
import math
from dataclasses import dataclass
import torch
import torch.nn as nn
from torch.nn import functional as F
torch.set_num_threads(1)
torch.manual_seed(1337)
torch.set_printoptions(precision=3)

# %%
text = "to be or not to be that is the question " * 3
chars = sorted(set(text))
encode = lambda s: [chars.index(c) for c in s]
decode = lambda l: "".join(chars[i] for i in l)
data = torch.tensor(encode(text))
decode(encode("to be")), len(chars)

# %%
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]        # two views
val_data.storage_offset(), train_data.untyped_storage().data_ptr() == val_data.untyped_storage().data_ptr()

# %%
@dataclass
class Config:
    block: int = 8
    embd: int = 16
    heads: int = 2
    layers: int = 2
    dropout: float = 0.0
config = Config()
config

# %%
def get_batch(split, batch=4):
    source = train_data if split == "train" else val_data
    ix = torch.randint(len(source) - config.block, (batch,))
    x = torch.stack([source[i:i + config.block] for i in ix])
    y = torch.stack([source[i + 1:i + config.block + 1] for i in ix])
    return x, y

xb, yb = get_batch("train")
xb[0], yb[0]

# %%
class Head(nn.Module):
    def __init__(self, c, size):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(c.embd, size, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(c.block, c.block)))
    def forward(self, x):
        B, T, C = x.shape
        w = self.query(x) @ self.key(x).transpose(-2, -1) / math.sqrt(C)
        w = w.masked_fill(self.tril[:T, :T] == 0, float("-inf")).softmax(-1)
        return w @ self.value(x)

# %%
class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = nn.ModuleList([Head(c, c.embd // c.heads) for _ in range(c.heads)])
        self.mlp = nn.Sequential(nn.Linear(c.embd, 2 * c.embd), nn.GELU(), nn.Linear(2 * c.embd, c.embd))
        self.ln1, self.ln2 = nn.LayerNorm(c.embd), nn.LayerNorm(c.embd)
    def forward(self, x):
        x = x + torch.cat([h(self.ln1(x)) for h in self.heads], dim=-1)
        return x + self.mlp(self.ln2(x))

# %%
class GPT(nn.Module):
    def __init__(self, c, vocab):
        super().__init__()
        self.c = c
        self.tok, self.pos = nn.Embedding(vocab, c.embd), nn.Embedding(c.block, c.embd)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.layers)])
        self.head = nn.Linear(c.embd, vocab)
        self.apply(self._init)
    def _init(self, m):
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=0.05)
    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        logits = self.head(self.blocks(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    @torch.no_grad()
    def generate(self, idx, new):
        for _ in range(new):
            logits, _ = self(idx[:, -self.c.block:])
            idx = torch.cat([idx, torch.multinomial(logits[:, -1].softmax(-1), 1)], 1)
        return idx

# %%
gpt = GPT(config, len(chars))
gpt.c is config, sum(p.numel() for p in gpt.parameters())

# %%
gpt.blocks[0]

# %%
optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-2)

@torch.no_grad()
def estimate(iters=2):
    gpt.eval()
    out = {s: sum(gpt(*get_batch(s))[1].item() for _ in range(iters)) / iters for s in ("train", "val")}
    gpt.train()
    return {k: round(v, 3) for k, v in out.items()}

estimate()

# %%
for it in range(30):
    _, loss = gpt(*get_batch("train"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 10 == 0:
        print(it, round(loss.item(), 3))
del loss, _

# %%
estimate()

# %%
start = torch.zeros(1, 1, dtype=torch.long)
decode(gpt.generate(start, 20)[0].tolist())

# %%
decode(gpt.generate(start, 20)[0].tolist())

# %%
config.dropout = 0.5
gpt.c.dropout, type(gpt.c) is Config

# %%
gpt.blocks[0].heads[0].tril is gpt.get_buffer("blocks.0.heads.0.tril"), len(optimizer.state)

# %%
def forward(self, idx, targets=None):
    return torch.zeros(*idx.shape, len(chars)), None
old_forward = GPT.forward
GPT.forward = forward
decode(gpt.generate(start, 5)[0].tolist())

# %%
GPT.forward = old_forward
# raises: IndexError
gpt(torch.tensor([[999]]))

# %%
data[0] = 0
train_data[0], val_data[0], torch.rand(1)
