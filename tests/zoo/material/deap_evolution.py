# %% [markdown]
# needs: deap

# %%
import random
from deap import base, creator, tools
random.seed(1)
creator.create("Fit", base.Fitness, weights=(1.0,))
creator.create("Ind", list, fitness=creator.Fit, note=None)
box = base.Toolbox()
box.register("one", tools.initRepeat, creator.Ind, lambda: random.randint(0, 9), 3)
print(box.one())

# %%
pop = [box.one() for _ in range(4)]
for i in pop:
    i.fitness.values = (sum(i),)
print(pop, type(pop[0]).__name__)

# %%
best = tools.selBest(pop, 1)[0]
hall = tools.HallOfFame(2)
hall.update(pop)
print(best, best in pop, hall[0] == best, best.fitness.values)

# %%
box.register("mutate", tools.mutShuffleIndexes, indpb=1.0)
(m,) = box.mutate(box.clone(best))
print(sorted(m) == sorted(best), isinstance(m, creator.Ind))

# %%
best[0] = 0
print(any(i is best for i in pop), creator.Ind is type(best), random.random())
