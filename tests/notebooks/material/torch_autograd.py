# %% [markdown]
# # Graphs of tensors, one cell at a time

# %%
import torch
torch.set_num_threads(1)
torch.manual_seed(0);

# %%
a = torch.tensor(2., requires_grad=True)
b = torch.tensor(3., requires_grad=True)

# %%
c = a * b
d = c + a ** 2
d

# %%
c.retain_grad()
d.backward()

# %%
a.grad, b.grad, c.grad

# %%
x = torch.linspace(0, 1, 5)
w = torch.zeros(2, requires_grad=True)
def model(x):
    return w[0] + w[1] * x

# %%
prediction = model(x)
prediction

# %%
loss = ((prediction - 2 * x) ** 2).mean()
loss

# %%
loss.backward()
w.grad

# %%
with torch.no_grad():
    w -= 0.5 * w.grad
w.grad = None
loss.item(), w

# %%
layer = torch.nn.Linear(2, 1)
out = layer(torch.ones(3, 2)).sum()
out.requires_grad, out.grad_fn is not None

# %%
grads = torch.autograd.grad(out, list(layer.parameters()))
grads

# %%
h = layer.weight * 2
h.register_hook(lambda g: print("hook", g.tolist()))
total = h.sum()

# %%
total.backward()
layer.weight.grad
