# %% [markdown]
# # Tensors and gradients

# %%
import torch
import numpy as np
torch.set_num_threads(1)
torch.manual_seed(0)

# %%
t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
t, t.shape, t.dtype

# %%
row = t[0]
flat = t.view(-1)
row.mul_(10)
flat

# %%
flat[-1] = -1
print(t)
print(row.storage_offset(), flat.data_ptr() == t.data_ptr())

# %%
a = np.ones(3)
shared = torch.from_numpy(a)
copied = torch.tensor(a)
a += 1
shared, copied

# %%
shared.add_(5)
a

# %%
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = (x ** 2).sum()
y.backward()
x.grad

# %%
(x * 3).sum().backward()
x.grad                      # it adds up

# %%
g = x.grad
x.grad.zero_()
g, g is x.grad

# %%
with torch.no_grad():
    x -= 0.5
x, x.is_leaf, x.requires_grad

# %%
z = x.detach()
z[0] = 100
x

# %%
torch.rand(2), torch.randn(2), torch.randint(0, 10, (3,))

# %%
gen = torch.Generator().manual_seed(5)
torch.rand(2, generator=gen)

# %%
torch.rand(2, generator=gen), torch.randperm(5)

# %%
# raises: RuntimeError
torch.ones(2, 3) @ torch.ones(2, 3)

# %%
# raises: RuntimeError
x.grad = None
loss = (x * 2).sum()
loss.backward()
loss.backward()

# %%
loss = None
x.grad

# %%
w = torch.zeros(2, requires_grad=True)
data = torch.tensor([[1., 1.], [1., 2.], [1., 3.]])
target = torch.tensor([3., 5., 7.])
losses = []
for step in range(50):
    err = ((data @ w - target) ** 2).mean()
    err.backward()
    losses.append(err.item())
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
del err
print(f"{losses[0]:.3f} -> {losses[-1]:.5f}", w)

# %%
table = {"weights": w, "again": [w, t]}
with torch.no_grad():
    table["again"][0].fill_(7)
w, table["weights"] is w

# %%
expanded = torch.tensor([[1], [2]]).expand(2, 3)
tr = t.t()
tr.is_contiguous(), expanded.stride(), tr[0]

# %%
tr[0] = torch.tensor([8., 9.])
t, row

# %%
b = torch.tensor([True, False])
c = torch.tensor(3, dtype=torch.int8)
h = t.half().bfloat16()
b, c, c.item(), h.dtype, torch.get_default_dtype()

# %%
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 2 * x * grad

v = torch.tensor(3., requires_grad=True)
Square.apply(v).backward()
v.grad

# %%
jac = torch.autograd.functional.jacobian(lambda q: q ** 2, torch.tensor([1., 2.]))
jac, torch.allclose(jac.diagonal(), torch.tensor([2., 4.]))
