# %% [markdown]
# # Fitting curves

# %%
import numpy as np
from scipy import optimize, stats, interpolate, sparse, integrate, linalg
np.random.seed(11)

# %%
t = np.linspace(0, 4, 40)
def decay(t, a, k, c):
    return a * np.exp(-k * t) + c
clean = decay(t, 3, 1.3, 0.5)
noisy = clean + 0.1 * np.random.randn(t.size)

# %%
popt, pcov = optimize.curve_fit(decay, t, noisy, p0=(2, 1, 0))
popt.round(3), np.sqrt(np.diag(pcov)).round(3)

# %%
fit = stats.linregress(t, np.log(clean - 0.5))
print(f"slope {fit.slope:.3f}, r {fit.rvalue:.3f}")
fit

# %%
calls = 0
path = []
def rosen(p):
    global calls
    calls += 1
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2

res = optimize.minimize(rosen, [-1, 2], callback=lambda p: path.append(p.copy()))
print(res.success, res.x.round(3), calls, len(path))

# %%
calls = 0
root = optimize.brentq(lambda v: rosen([v, 1]) - 5, 1, 3)
round(root, 4), calls

# %%
xs = np.arange(6)
ys = np.array([0., 1, 4, 2, 3, 1])
spline = interpolate.CubicSpline(xs, ys)
linear = interpolate.interp1d(xs, ys)
float(spline(2.5)), float(linear(2.5))

# %%
ys[2] = 100            # the linear one copied?
float(spline(2.0)), float(linear(2.0)), spline(xs, 1).round(2)

# %%
A = sparse.diags([-np.ones(5), 2 * np.ones(6), -np.ones(5)], [-1, 0, 1], format="csr")
A

# %%
from scipy.sparse.linalg import spsolve
b = np.ones(6)
u = spsolve(A.tocsc(), b)
u.round(3), A.nnz

# %%
A[0, 0] = 10
A.data[1] *= 2
print(A.toarray()[:2])

# %%
rows = sparse.lil_matrix((4, 4))
rows[0, 1] = 5
rows[3] = [1, 0, 2, 0]
rows.tocoo().col, rows.rows.tolist()

# %%
normal = stats.norm(loc=2, scale=0.5)
normal.cdf(2), normal.rvs(3, random_state=0).round(3)

# %%
sample_a = np.random.normal(0, 1, 30)
sample_b = np.random.normal(0.8, 1, 30)
test = stats.ttest_ind(sample_a, sample_b)
print(f"{test.statistic:.3f} {test.pvalue:.4f}")

# %%
area, error = integrate.quad(lambda v: decay(v, *popt), 0, 4)
sol = integrate.solve_ivp(lambda t, y: -1.3 * y, (0, 2), [3.0], t_eval=[0, 1, 2])
round(area, 4), sol.y.round(3), sol.message

# %%
lu, piv = linalg.lu_factor(np.array([[2., 1.], [1., 3.]]))
linalg.lu_solve((lu, piv), [3, 5])

# %%
# raises: LinAlgError
linalg.inv(np.zeros((2, 2)))

# %%
# raises: RuntimeError
optimize.curve_fit(decay, t, noisy, p0=(2, 1, 0), maxfev=2)

# %%
# gradient descent by hand, as always
w = np.zeros(2)
history = []
X = np.c_[np.ones_like(t), t]
target = 2 - 0.5 * t
for step in range(200):
    grad = 2 * X.T @ (X @ w - target) / len(t)
    w -= 0.1 * grad
    history.append(w)          # a classical mistake
w.round(3), history[0] is history[-1]

# %%
w[0] = 0
history[10]
