# %% [markdown]
# needs: gymnasium, numpy

# %%
import gymnasium as gym, numpy as np
from gymnasium import spaces
class Corridor(gym.Env):
    metadata = {"render_modes": ["ansi"]}
    def __init__(self, n=5, render_mode=None):
        self.n, self.render_mode = n, render_mode
        self.observation_space = spaces.Discrete(n)
        self.action_space = spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(self.n - 1))
        return self.at, {}
    def step(self, a):
        self.at = max(0, self.at + (1 if a else -1))
        return self.at, float(self.at == self.n - 1), self.at == self.n - 1, False, {}
    def render(self):
        return "." * self.at + "X"
gym.register("Corridor-v0", Corridor, max_episode_steps=20)
env = gym.make("Corridor-v0", n=4, render_mode="ansi")
print(env.reset(seed=1), env.spec.id)

# %%
print(env.step(1), env.render())

# %%
e2 = gym.make("Corridor-v0")
print(e2.unwrapped.n, e2.reset(seed=3)[0], "Corridor-v0" in gym.registry)

# %%
class Double(gym.RewardWrapper):
    def reward(self, r):
        return 2 * r
w = Double(env)
w.reset(seed=1)
total = 0
for _ in range(4):
    o, r, term, trunc, _ = w.step(1)
    total += r
    if term: break
print(total, w.unwrapped is env.unwrapped)

# %%
env.action_space.seed(5)
print([int(env.action_space.sample()) for _ in range(4)])

# %%
print([int(env.action_space.sample()) for _ in range(4)])

# %%
box = spaces.Box(-1, 1, (2,), np.float32, seed=3)
d = spaces.Dict({"a": box, "b": spaces.MultiBinary(3)}, seed=2)
print(d.sample()["b"].tolist(), d["a"] is box, box.contains(np.zeros(2, np.float32)))

# %%
print(d.sample()["b"].tolist(), box.sample().round(3).tolist())

# %%
from gymnasium.wrappers import RecordEpisodeStatistics, TransformObservation
rec = RecordEpisodeStatistics(TransformObservation(gym.make("Corridor-v0"), lambda o: o * 10, spaces.Discrete(100)))
o, _ = rec.reset(seed=2)
for _ in range(20):
    o, r, te, tr, info = rec.step(1)
    if te or tr: break
print(o, info["episode"]["l"])

# %%
vec = gym.make_vec("Corridor-v0", num_envs=2, vectorization_mode="sync")
print(vec.reset(seed=4)[0].tolist())

# %%
print(vec.step(np.array([1, 0]))[0].tolist(), rec.return_queue[-1])

# %%
cart = gym.make("CartPole-v1")
o, _ = cart.reset(seed=0)
print(o.round(4).tolist())

# %%
print(cart.step(1)[0].round(4).tolist(), cart.spec.max_episode_steps)
