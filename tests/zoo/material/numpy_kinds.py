# %% [markdown]
# needs: numpy

# %%
import numpy as np
m = np.ma.array(np.arange(6.0), mask=[0,1,0,0,0,0])
b = m[1:4]; dat = m.data; k = m.mask

# %%
b[1] = 50
m, dat

# %%
dat[3] = 7
m, b

# %%
m[0] = np.ma.masked
m, k, b.mask

# %%
b[2] = np.ma.masked
m, k

# %%
class A(np.ndarray):
    def __array_finalize__(self, o): self.tag = getattr(o, 'tag', 'new')
x = np.arange(4.0).view(A); x.tag = 'x'
y = x[1:]; z = x.view(np.ndarray)

# %%
y[0] = 8
x, z, y.tag

# %%
z[2] = 11
x, y

# %%
r = np.rec.array([(1, 2.0), (3, 4.0)], names='a,b')
ra = r.a; r1 = r[1]

# %%
ra[0] = 9
r

# %%
r1.b = 8
r.a[1] = 7
r, ra, r1

# %%
mat = np.matrix([[1, 2], [3, 4]]); row = mat[0]; mT = mat.T

# %%
row[0, 1] = 99
mat, mT

# %%
ch = np.char.array(['a', 'b']); c2 = ch[1:]

# %%
c2[0] = 'z'
ch
