# %% [markdown]
# needs: simpy

# %%
import simpy
env = simpy.Environment()
log = []
class Till(simpy.Resource):
    served = 0
till = Till(env, 1)
print(env.now, till.capacity)

# %%
def customer(env, name, till):
    with till.request() as slot:
        yield slot
        yield env.timeout(2)
        Till.served += 1
        log.append((env.now, name))
for n in "abc":
    env.process(customer(env, n, till))
env.run()
print(log, env.now)

# %%
env.process(customer(env, "d", till))
env.run()
print(log[-1], Till.served)

# %%
box = simpy.Container(env, 10, init=3)
box.put(2)
env.run()
print(box.level, env.now)

# %%
store = simpy.Store(env)
store.put("x")
env.run(until=20)
print(store.items, env.now, till.users)

# %%
# raises: ValueError
env.run(until=5)
