# %% [markdown]
# needs: pint

# %%
import pint
ureg = pint.UnitRegistry()
ureg.define("smoot = 1.7 * meter")
d = 3 * ureg.smoot
print(d.to("m"), ureg.smoot)

# %%
ureg.formatter.default_format = "~P"
v = d / (2 * ureg.s)
print(v, v.check("[speed]"), d._REGISTRY is ureg)

# %%
ureg.define("furlong2 = 2 * furlong")
print((1 * ureg.furlong2).to("m"), d + 1 * ureg.m)

# %%
Q = ureg.Quantity
m = Q([1.0, 2.0], "km")
m.ito("m")
print(m, isinstance(m, Q))

# %%
@ureg.wraps("m", ("s", "m/s"))
def dist(t, s):
    return t * s
print(dist(Q(1, "min"), v), {d: 1}[3 * ureg.smoot])

# %%
# raises: DimensionalityError
d + v
