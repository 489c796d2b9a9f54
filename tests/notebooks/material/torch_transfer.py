# %% [markdown]
# # Freezing, schedules, checkpoints

# %%
import copy
import torch
from torch import nn, optim
torch.set_num_threads(1)
torch.manual_seed(3)

# %%
backbone = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
head = nn.Linear(8, 2)
model = nn.Sequential(backbone, head)
model[0] is backbone, model[1].weight is head.weight

# %%
X, y = torch.randn(64, 6), torch.randint(0, 2, (64,))
X[:1], y[:5]

# %%
for p in backbone.parameters():
    p.requires_grad_(False)
[p.requires_grad for p in model.parameters()]

# %%
opt = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1)
scheduler = optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
frozen = backbone[0].weight.clone()

# %%
def train(epochs):
    for _ in range(epochs):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(X), y)
        loss.backward()
        opt.step()
        scheduler.step()
        lrs.append(opt.param_groups[0]["lr"])
    return round(loss.item(), 4)

lrs = []
train(3)

# %%
lrs, torch.equal(frozen, backbone[0].weight), scheduler.optimizer is opt

# %%
train(3), scheduler.last_epoch, lrs[-1]

# %%
best = copy.deepcopy(model.state_dict())
checkpoint = {"model": model.state_dict(), "opt": opt.state_dict(), "scheduler": scheduler.state_dict(), "epoch": 6}
torch.save(checkpoint, "ckpt.pt")

# %%
# thaw the last layer
for p in backbone[2].parameters():
    p.requires_grad = True
opt.add_param_group({"params": backbone[2].parameters(), "lr": 0.01})
len(opt.param_groups), [len(g["params"]) for g in opt.param_groups]

# %%
# raises: ValueError
opt.add_param_group({"params": head.parameters()})

# %%
before = backbone[2].weight.detach().clone()
train(2), (backbone[2].weight - before).abs().sum() > 0, [g["lr"] for g in opt.param_groups]

# %%
loaded = torch.load("ckpt.pt")
model.load_state_dict(loaded["model"])
opt2 = optim.AdamW(head.parameters(), lr=0.1)
opt2.load_state_dict(loaded["opt"])
opt2.state[head.weight]["step"], loaded["epoch"]

# %%
torch.equal(head.weight, best["1.weight"]), opt2.param_groups[0]["params"][0] is head.weight

# %%
ema = copy.deepcopy(model)
def update_ema(decay=0.9):
    with torch.no_grad():
        for e, p in zip(ema.parameters(), model.parameters()):
            e.lerp_(p, 1 - decay)
opt = opt2
scheduler = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)
train(2)

# %%
update_ema()
(ema[1].weight - head.weight).abs().max().item() > 0, ema[0][0].weight is backbone[0].weight

# %%
model[1] = nn.Linear(8, 3)                # a new head, the old one lives on
model[1] is head, model(X).shape, len(list(model.parameters()))

# %%
# weights that are tied
enc, dec = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
dec.weight = enc.weight
tied = nn.ModuleDict({"enc": enc, "dec": dec})
len(list(tied.parameters()))

# %%
o = optim.SGD(tied.parameters(), lr=1.0)
tied["dec"](tied["enc"](torch.tensor([1, 2]))).sum().backward()
o.step()
torch.equal(enc.weight, dec.weight), enc.weight is tied["dec"].weight

# %%
nn.init.zeros_(enc.weight)
dec.weight.sum().item(), sorted(tied.state_dict())

# %%
buf = nn.BatchNorm1d(2)
buf.register_buffer("steps", torch.zeros(1))
buf.steps += 1
buf(torch.tensor([[1., 2.], [3., 4.]])).detach(), dict(buf.named_buffers()).keys()

# %%
scripted = torch.nn.utils.parameters_to_vector(head.parameters())
scripted.shape, torch.rand(1)

# %%
# what is left of the graph is of no use to anybody
del scripted
