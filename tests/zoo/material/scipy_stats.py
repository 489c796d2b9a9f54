# %% [markdown]
# needs: scipy, numpy

# %%
import numpy as np
from scipy import stats, interpolate, spatial
rng = np.random.default_rng(3)
frozen = stats.gamma(2.0, scale=3)
frozen.random_state = rng
print(round(frozen.mean(), 3), frozen.rvs(2).round(3))

# %%
class Ramp(stats.rv_continuous):
    def _pdf(self, x):
        return 2 * x
ramp = Ramp(a=0, b=1, name="ramp")
print(round(ramp.mean(), 4), frozen.rvs(1).round(3), round(rng.random(), 4))

# %%
spline = interpolate.CubicSpline([0, 1, 2, 3], [0, 1, 4, 9])
tree = spatial.KDTree(np.array([[0, 0], [1, 1], [5, 5.0]]))
print(spline(1.5).round(4), tree.query([4, 4])[1], round(ramp.cdf(0.5), 4))

# %%
spline.c[-1] += 1
holders = {"a": spline, "b": spline}
print(spline(1.0), tree.query_ball_point([0, 0], 2))

# %%
hull = spatial.ConvexHull([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
print(holders["a"] is holders["b"], sorted(hull.vertices.tolist()), hull.area, frozen.random_state is rng)

# %%
print(hull.volume, spline(1.0), tree.n, isinstance(ramp, Ramp))
