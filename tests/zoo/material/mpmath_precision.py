# %% [markdown]
# needs: mpmath

# %%
import mpmath as mp
mp.mp.dps = 30
a = mp.mpf(1) / 3
m = mp.matrix([[1, 2], [3, 4]])
print(a, m[0, 1])

# %%
m[0, 0] = mp.pi
print(mp.det(m), mp.mp.dps)

# %%
mp.mp.dps = 15
iv = mp.iv.mpf([1, 2])
print(a + 1, iv * 2)

# %%
ctx = mp.MPContext() if hasattr(mp, "MPContext") else mp.mp.clone()
ctx.dps = 40
print(ctx.mpf(2).sqrt() if hasattr(ctx.mpf(2), "sqrt") else ctx.sqrt(2), mp.mp.dps)

# %%
print(ctx.dps, mp.quad(lambda x: x ** 2, [0, 1]), isinstance(a, mp.mpf), m.T[0, 1])
