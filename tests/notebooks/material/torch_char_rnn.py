# %% [markdown]
# # Names, letter by letter

# %%
import torch
import torch.nn as nn
torch.set_num_threads(1)
_ = torch.manual_seed(1)

# %%
names = ["anna", "hanna", "johanna", "susanna", "dana", "jana", "ana", "nana"]
chars = ["."] + sorted(set("".join(names)))
stoi = {c: i for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
len(chars), stoi

# %%
def encode(name):
    return torch.tensor([stoi[c] for c in "." + name + "."])

encode("anna")

# %%
# counting first
N = torch.zeros(len(chars), len(chars), dtype=torch.int32)
for name in names:
    codes = encode(name)
    for a, b in zip(codes, codes[1:]):
        N[a, b] += 1
N[0]

# %%
P = (N + 1).float()
P /= P.sum(1, keepdim=True)
g = torch.Generator().manual_seed(2147483647)

def sample_bigram():
    out, ix = "", 0
    while len(out) < 12:
        ix = torch.multinomial(P[ix], 1, generator=g).item()
        if ix == 0:
            break
        out += itos[ix]
    return out

[sample_bigram() for _ in range(4)]

# %%
[sample_bigram() for _ in range(2)]

# %%
class CharRNN(nn.Module):
    def __init__(self, vocab, hidden=12):
        super().__init__()
        self.emb = nn.Embedding(vocab, 6)
        self.rnn = nn.GRU(6, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)
    def forward(self, x, h=None):
        y, h = self.rnn(self.emb(x), h)
        return self.out(y), h

# %%
net = CharRNN(len(chars))
opt = torch.optim.Adam(net.parameters(), 0.02)
data = [encode(n) for n in names]
initial = [p.clone().detach() for p in net.parameters()]

# %%
losses = []
for epoch in range(8):
    for i in torch.randperm(len(data)):
        codes = data[i]
        logits, _h = net(codes[None, :-1])
        loss = nn.functional.cross_entropy(logits[0], codes[1:])
        opt.zero_grad(); loss.backward(); opt.step()
    losses.append(round(loss.item(), 3))
loss = logits = _h = None
losses

# %%
@torch.no_grad()
def generate(temperature=1.0, limit=12):
    x, h, out = torch.tensor([[0]]), None, ""
    for _ in range(limit):
        logits, h = net(x, h)
        probs = (logits[0, -1] / temperature).softmax(0)
        x = torch.multinomial(probs, 1)[None]
        if x.item() == 0:
            break
        out += itos[x.item()]
    return out

# %%
torch.manual_seed(7)
first = [generate() for _ in range(3)]
first

# %%
torch.manual_seed(7)
second = [generate() for _ in range(3)]
first == second

# %%
[generate(t) for t in (0.2, 1.0, 3.0)]

# %%
any(torch.equal(a, b) for a, b in zip(initial, net.parameters()))

# %%
h = None
states = []
with torch.no_grad():
    for c in "ann":
        _, h = net(torch.tensor([[stoi[c]]]), h)
        states.append(h)
states[-1] is h, h.shape

# %%
# raises: KeyError
encode("zoe")

# %%
# raises: KeyError
stoi["z"] = len(stoi)
encode("zoe")

# %%
nn.utils.clip_grad_norm_(net.parameters(), 0.1) > 0, max(p.grad.norm() for p in net.parameters()) <= 0.1

# %%
torch.rand(2), torch.initial_seed()
