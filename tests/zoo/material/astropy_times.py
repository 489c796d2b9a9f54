# %% [markdown]
# needs: astropy

# %%
from astropy.time import Time
from astropy.coordinates import SkyCoord
from astropy import units as u
t = Time(["2024-01-01", "2024-06-01"], scale="utc")
print(t.jd, t[0].isot)

# %%
t.format = "isot"
c = SkyCoord(10 * u.deg, 20 * u.deg, obstime=t[0])
print(t, c.galactic.l.deg.round(5))

# %%
t[0] = "2025-01-01"
print(t.value, c.obstime.isot, type(c.frame).__name__)

# %%
from astropy.cosmology import FlatLambdaCDM
cosmo = FlatLambdaCDM(H0=70, Om0=0.3)
print(cosmo.age(0).round(3), c.separation(c).deg)

# %%
from astropy.modeling import models, fitting
g = models.Gaussian1D(2, 0, 1) + models.Const1D(1)
g.amplitude_0 = 5
print(g(0.0), cosmo.H0, g.param_names)

# %%
g.mean_0.fixed = True
print(g.fixed["mean_0"], g[0].amplitude, t[0] > t[1])
