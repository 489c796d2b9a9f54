# %% [markdown]
# # A first network

# %%
import torch
from torch import nn
import torch.nn.functional as F
import matplotlib.pyplot as plt
# %matplotlib inline
torch.set_num_threads(1)
torch.manual_seed(42)

# %%
n = 90
X = torch.randn(n, 2)
y = (X[:, 0] * X[:, 1] > 0).long()
X[:2], y.float().mean()

# %%
class MLP(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 2))

    def forward(self, x):
        return self.layers(x)

# %%
model = MLP()
model

# %%
sum(p.numel() for p in model.parameters()), [n for n, _ in model.named_parameters()]

# %%
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
first = model.layers[0]
weight = first.weight
optimizer.param_groups[0]["params"][0] is weight

# %%
history = []
def epoch():
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(X), y)
    loss.backward()
    optimizer.step()
    history.append(loss.item())

# %%
for i in range(20):
    epoch()
print(f"{history[0]:.4f} {history[-1]:.4f}")

# %%
optimizer.param_groups[0]["params"][0] is weight, weight is model.layers[0].weight, len(optimizer.state)

# %%
for i in range(30):
    epoch()
print(f"{history[-1]:.4f}", len(history))

# %%
model.eval()
with torch.no_grad():
    accuracy = (model(X).argmax(1) == y).float().mean().item()
round(accuracy, 3), model.training

# %%
fig, ax = plt.subplots(figsize=(3, 2))
ax.plot(history);

# %%
ax.set_xlabel("epoch")
fig

# %%
weight.grad.abs().sum() > 0, weight.grad is first.weight.grad

# %%
snapshot = {k: v.clone() for k, v in model.state_dict().items()}
live = model.state_dict()
epoch()
print(torch.equal(snapshot["layers.0.bias"], live["layers.0.bias"]), torch.equal(live["layers.0.bias"], first.bias))

# %%
model.load_state_dict(snapshot)

# %%
activations = {}
def save(name):
    def hook(module, args, output):
        activations[name] = output.detach()
    return hook
handle = model.layers[1].register_forward_hook(save("relu"))

# %%
model.eval()
with torch.no_grad():
    out = model(X[:3])
activations["relu"].shape, out

# %%
handle.remove()
activations.clear()
with torch.no_grad():
    model(X[:1])
activations

# %%
# raises: RuntimeError
model(torch.ones(1, 3))

# %%
for group in optimizer.param_groups:
    group["lr"] *= 0.1
epoch()
optimizer.param_groups[0]["lr"], round(history[-1], 4)

# %%
probs = F.softmax(out, dim=1)
probs.sum(1), probs.argmax(1).tolist()
