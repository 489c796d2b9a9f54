# %% [markdown]
# needs: transitions

# %%
from transitions import Machine, State, MachineError
class Lamp:
    def __init__(self):
        self.log = []
    def on_enter_on(self):
        self.log.append("on")
lamp = Lamp()
machine = Machine(lamp, states=["off", "on"], initial="off")
machine.add_transition("flip", "off", "on")
machine.add_transition("flip", "on", "off", after=lambda: lamp.log.append("off"))
print(lamp.state, lamp.is_off())

# %%
lamp.flip()
print(lamp.state, lamp.log, machine.model is lamp)

# %%
lamp.flip()
machine.add_state("broken")
machine.add_transition("hit", "*", "broken", conditions=["strong"])
lamp.strong = True
print(lamp.log, lamp.state)

# %%
lamp.hit()
print(lamp.state, machine.get_state("broken").name)

# %%
# raises: MachineError
lamp.flip()
