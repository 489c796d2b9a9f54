# %% [markdown]
# needs: mesa

# %%
import mesa
class Wealth(mesa.Agent):
    def __init__(self, model): super().__init__(model); self.w = 1
    def give(self):
        other = self.random.choice(list(self.model.agents))
        if self.w > 0: other.w += 1; self.w -= 1
class M(mesa.Model):
    def __init__(self, n):
        super().__init__(rng=42); Wealth.create_agents(self, n)
    def step(self): self.agents.shuffle_do('give')
m = M(5)

# %%
for _ in range(5): m.step()
[a.w for a in m.agents]

# %%
a0 = list(m.agents)[0]
m.step(); [a.w for a in m.agents], a0.w, a0.unique_id, a0.model is m

# %%
a0.w += 10; b = Wealth(m); b.unique_id, len(m.agents)

# %%
[a.w for a in m.agents], len(m.agents_by_type[Wealth]), b in m.agents

# %%
b.remove(); len(m.agents)

# %%
len(m.agents), m.random.random()

# %%
m.random.random(), m.agents.select(lambda a: a.w > 0).agg('w', sum)

# %%
dc = mesa.DataCollector(model_reporters={'t': lambda m: sum(a.w for a in m.agents)}, agent_reporters={'w': 'w'})
dc.collect(m); dc.get_model_vars_dataframe().t.tolist()

# %%
dc.collect(m); dc.get_model_vars_dataframe().t.tolist(), len(dc.get_agent_vars_dataframe())
