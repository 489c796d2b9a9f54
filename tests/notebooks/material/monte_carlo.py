# %% [markdown]
# # Throwing dice at problems

# %%
import math
import random
from collections import Counter, defaultdict

random.seed(2024)

# %%
def estimate_pi(n):
    inside = 0
    for _ in range(n):
        x, y = random.random(), random.random()
        inside += x * x + y * y <= 1
    return 4 * inside / n

# %%
estimates = []
for n in (10, 100, 1000, 10_000):
    estimates.append((n, estimate_pi(n)))
    print(f"{n:>6} {estimates[-1][1]:.4f}  error {abs(estimates[-1][1] - math.pi):.4f}")

# %%
random.choice("abc"), random.gauss(0, 1)

# %%
class Die:
    """A die that may be loaded."""
    rolled = 0

    def __init__(self, weights=None, rng=None):
        self.weights = weights or [1] * 6
        self.rng = rng or random

    def roll(self):
        Die.rolled += 1
        return self.rng.choices(range(1, 7), self.weights)[0]

# %%
fair = Die()
mine = random.Random(5)
loaded = Die([1, 1, 1, 1, 1, 5], rng=mine)
counts = Counter(loaded.roll() for _ in range(600))
sorted(counts.items())

# %%
print(Die.rolled, loaded.rng is mine)
mine.random()

# %%
state = random.getstate()
first = [random.randint(1, 6) for _ in range(5)]
random.setstate(state)
second = [random.randint(1, 6) for _ in range(5)]
first == second, first

# %%
deck = [f"{rank}{suit}" for suit in "SHDC" for rank in "A23456789TJQK"]
hand = deck[:5]
random.shuffle(deck)
deck[:5], hand

# %%
def deal(deck, n):
    return [deck.pop() for _ in range(n)]

hands = {player: deal(deck, 5) for player in ("ann", "bob", "cem")}
hands["ann"], len(deck)

# %%
# Birthday problem
def has_twins(k):
    seen = set()
    for _ in range(k):
        day = random.randrange(365)
        if day in seen:
            return True
        seen.add(day)
    return False

probability = {k: sum(has_twins(k) for _ in range(400)) / 400 for k in (5, 23, 50)}
probability

# %%
# Gambler's ruin; the history is shared on purpose
histories = defaultdict(list)
log = histories["ann"]

def play(name, money, goal):
    while 0 < money < goal:
        money += random.choice((-1, 1))
        histories[name].append(money)
    return money

# %%
result = play("ann", 5, 10)
print(result, len(log), log is histories["ann"])

# %%
play("bob", 3, 6)
log.append("end")
{name: (len(history), history[-1]) for name, history in histories.items()}

# %%
import numpy as np
np.random.seed(0)
walks = np.cumsum(np.random.choice([-1, 1], size=(200, 50)), axis=1)
print(walks[:, -1].mean(), walks[:, -1].std())

# %%
seeds = np.random.SeedSequence(12).spawn(2)
one, two = (np.random.default_rng(seed) for seed in seeds)
one.random(), two.random()

# %%
also_one = one
values = [one.random(), also_one.random()]
values, np.random.rand()

# %%
best = max(range(20), key=lambda _: random.random())
best
