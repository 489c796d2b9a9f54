# %% [markdown]
# # A CNN for digits that we draw ourselves

# %%
import random
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader, TensorDataset, random_split

torch.set_num_threads(1)
def seed_everything(seed=0):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
seed_everything()

# %%
GLYPHS = {
    0: ["###", "#.#", "#.#", "#.#", "###"],
    1: [".#.", "##.", ".#.", ".#.", "###"],
    7: ["###", "..#", ".#.", ".#.", ".#."],
}
def draw(digit):
    image = np.zeros((8, 8), dtype=np.float32)
    dy, dx = random.randint(0, 2), random.randint(0, 4)
    for r, line in enumerate(GLYPHS[digit]):
        for c, char in enumerate(line):
            image[r + dy, c + dx] = char == "#"
    return image + 0.1 * np.random.randn(8, 8).astype(np.float32)

draw(7).round(1)[:3]

# %%
class Digits(Dataset):
    def __init__(self, n, transform=None):
        self.classes = list(GLYPHS)
        self.y = [random.randrange(len(self.classes)) for _ in range(n)]
        self.x = np.stack([draw(self.classes[k]) for k in self.y])
        self.transform = transform
    def __len__(self):
        return len(self.y)
    def __getitem__(self, i):
        x = torch.from_numpy(self.x[i])[None]
        return (self.transform(x) if self.transform else x), self.y[i]

# %%
data = Digits(120)
train, test = random_split(data, [90, 30])
len(train), len(test), train.dataset is data

# %%
train_loader = DataLoader(train, batch_size=16, shuffle=True)
test_loader = DataLoader(test, batch_size=30)
xb, yb = next(iter(train_loader))
xb.shape, yb

# %%
class CNN(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(4 * 4 * 4, classes)
    def forward(self, x):
        x = self.pool(torch.relu(self.bn(self.conv(x))))
        return self.fc(x.flatten(1))

net = CNN(len(GLYPHS))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()

# %%
def run(loader, train=True):
    net.train(train)
    total, right = 0.0, 0
    with torch.set_grad_enabled(train):
        for x, y in loader:
            out = net(x)
            loss = loss_fn(out, y)
            if train:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item() * len(y)
            right += (out.argmax(1) == y).sum().item()
    return total / len(loader.dataset), right / len(loader.dataset)

# %%
log = []
for e in range(2):
    log.append((*run(train_loader), *run(test_loader, train=False)))
    print("epoch %d: train %.3f %.2f test %.3f %.2f" % (e, *log[-1]))

# %%
net.bn.num_batches_tracked, net.bn.running_mean.round(decimals=3)

# %%
from tqdm import tqdm
import sys
for e in tqdm(range(2), bar_format="{desc}{n_fmt}/{total_fmt}", mininterval=0, file=sys.stdout):
    log.append((*run(train_loader), *run(test_loader, train=False)))
round(log[-1][0], 4)

# %%
data.transform = lambda t: t.flip(-1)          # the subset sees it
x0, y0 = train[0]
flipped = x0.clone()
data.transform = None
torch.equal(train[0][0].flip(-1), flipped)

# %%
data.x[train.indices[0]] = 0
train[0][0].abs().sum()

# %%
wrong = []
net.eval()
for x, y in test_loader:
    with torch.no_grad():
        guess = net(x).argmax(1)
    wrong += [(int(g), int(t)) for g, t in zip(guess, y) if g != t]
len(wrong)

# %%
matrix = torch.zeros(3, 3, dtype=torch.int)
for t, g in zip(y, guess):
    matrix[t, g] += 1
matrix

# %%
kernels = net.conv.weight.detach()
kernels.shape, kernels.data_ptr() == net.conv.weight.data_ptr()

# %%
kernels[0].zero_()
net.conv.weight[0].abs().sum().item()

# %%
ds = TensorDataset(torch.arange(4.), torch.arange(4.) * 2)
[(a.tolist(), b.tolist()) for a, b in DataLoader(ds, batch_size=3, drop_last=False)]

# %%
random.random(), np.random.rand(), torch.rand(1)

# %%
net.zero_grad(set_to_none=True)
net.conv.weight.grad, opt.state[net.conv.weight]["momentum_buffer"].shape
