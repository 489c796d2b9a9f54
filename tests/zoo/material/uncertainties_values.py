# %% [markdown]
# needs: uncertainties

# %%
from uncertainties import ufloat, umath, correlated_values
x = ufloat(2.0, 0.1, "len")
y = ufloat(3.0, 0.2)
area = x * y
print(area, x - x)

# %%
x.std_dev = 0.5
print(area, (x - x).s)

# %%
print(area.derivatives[x], x in area.derivatives, x.tag)

# %%
s = umath.sin(x) + area
parts = {v.tag: round(e, 4) for v, e in s.error_components().items()}
print(parts, area / y - x)

# %%
a, b = correlated_values([1, 2], [[0.1, 0.05], [0.05, 0.2]])
print((a - b).s.__round__(5), (s - area - umath.sin(x)).s.__round__(6))

# %%
# raises: NegativeStdDev
ufloat(1, -1)
