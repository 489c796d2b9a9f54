# %% [markdown]
# # Data loading with workers, and runs that can be repeated

# %%
import os, random
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler, get_worker_info

def set_seed(seed):
    random.seed(seed); np.random.seed(seed); torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    os.environ["PYTHONHASHSEED"] = str(seed)
set_seed(7)
torch.set_num_threads(1)

# %%
class Pictures(Dataset):
    def __init__(self, n, transform=None):
        self.data = np.random.rand(n, 4).astype("float32")
        self.transform = transform
    def __len__(self): return len(self.data)
    def __getitem__(self, i):
        x = torch.from_numpy(self.data[i])
        return (self.transform(x) if self.transform else x), i % 3

noisy = lambda x: x + torch.randn(4) * 0.01
ds = Pictures(12, noisy)
len(ds), ds[0]

# %%
def seed_worker(worker_id):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed); random.seed(seed)

g = torch.Generator().manual_seed(0)
loader = DataLoader(ds, batch_size=4, shuffle=True, num_workers=2, worker_init_fn=seed_worker, generator=g)
first = [(x.sum().item(), y.tolist()) for x, y in loader]
first

# %%
g.manual_seed(0)
again = [(x.sum().item(), y.tolist()) for x, y in loader]
again == first

# %%
class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for i in range(info.id if info else 0, 6, info.num_workers if info else 1):
            yield i

[batch.tolist() for batch in DataLoader(Stream(), batch_size=2)], sorted(int(i) for i in DataLoader(Stream(), num_workers=2))

# %%
class Broken(Dataset):
    def __len__(self): return 2
    def __getitem__(self, i): raise KeyError(f"no picture {i}")

try:
    next(iter(DataLoader(Broken(), num_workers=1)))
except KeyError as error:
    print(type(error).__name__, "no picture 0" in str(error))

# %%
def collate(rows):
    xs, ys = zip(*rows)
    return {"x": torch.stack(xs), "y": torch.tensor(ys), "n": len(rows)}
sampler = WeightedRandomSampler([1.0] * 6 + [0.0] * 6, 6, generator=g)
batch = next(iter(DataLoader(ds, batch_size=6, sampler=sampler, collate_fn=collate)))
batch["n"], batch["y"], batch["x"].shape

# %%
random.random(), np.random.rand(), torch.rand(1)

# %%
state = random.getstate(), np.random.get_state(), torch.get_rng_state()
one = random.random(), np.random.rand(), torch.rand(1)

# %%
random.setstate(state[0]); np.random.set_state(state[1]); torch.set_rng_state(state[2])
two = random.random(), np.random.rand(), torch.rand(1)
one == two

# %%
del state
rng = np.random.default_rng(3)
rng.normal(size=2), rng.integers(10, size=3)

# %%
rng.normal(size=2), rng.spawn(1)[0].random()

# %%
import multiprocessing as mp
def square(x): return x * x
with mp.get_context("fork").Pool(2) as pool:
    mapped = pool.map(square, range(5))
del pool
mapped

# %%
with torch.random.fork_rng():
    torch.manual_seed(99)
    inner = torch.rand(2)
outer = torch.rand(2)
inner, outer

# %%
torch.are_deterministic_algorithms_enabled(), os.environ["PYTHONHASHSEED"], torch.get_num_threads()

# %%
torch.use_deterministic_algorithms(False)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        cost = torch.nn.functional.cross_entropy(model(x), y)
        cost.backward(); optimizer.step()
        losses.append(round(cost.item(), 5))
del cost, loader
losses
