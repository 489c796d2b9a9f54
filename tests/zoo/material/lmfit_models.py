# %% [markdown]
# needs: lmfit, numpy

# %%
import numpy as np
from lmfit import Parameters, Model, minimize
x = np.linspace(0, 4, 20)
y = 3 * np.exp(-x / 2)
p = Parameters()
p.add("a", 1, min=0)
p.add("b", 1)
p.add("c", expr="a * b")
print(p["c"].value)

# %%
p["a"].value = 5
print(p["c"].value, p["a"].min)

# %%
def decay(x, amp=1.0, tau=1.0):
    return amp * np.exp(-x / tau)
model = Model(decay)
fit = model.fit(y, x=x, amp=1, tau=1)
print({k: round(v, 3) for k, v in fit.best_values.items()})

# %%
fit.params["tau"].vary = False
p["b"].set(expr="2 * a")
print(p["b"].value, p["c"].value, fit.model is model)

# %%
res = minimize(lambda q: q["a"] - 2, p, method="nelder")
print(round(res.params["a"].value, 2), fit.eval(x=np.array([0.0])).round(3))
