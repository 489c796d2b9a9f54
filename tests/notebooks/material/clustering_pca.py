# %% [markdown]
# # Finding groups

# %%
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans, AgglomerativeClustering, DBSCAN
from sklearn.decomposition import PCA
from sklearn.datasets import make_blobs

# %%
X, truth = make_blobs(n_samples=90, centers=3, n_features=5, random_state=4)
X.shape, truth[:10]

# %%
mean, std = X.mean(0), X.std(0)
X -= mean
X /= std
X.mean().round(6), X.std().round(6)

# %%
pca = PCA(n_components=2, random_state=0)
Z = pca.fit_transform(X)
pca.explained_variance_ratio_.round(3)

# %%
km = KMeans(3, n_init=3, random_state=0)
labels = km.fit_predict(Z)
np.bincount(labels)

# %%
km.labels_ is labels

# %%
pd.crosstab(labels, truth)

# %%
inertia = {}
for k in range(1, 6):
    inertia[k] = KMeans(k, n_init=2, random_state=0).fit(Z).inertia_
{k: round(v, 1) for k, v in inertia.items()}

# %%
# by hand
def assign(points, centers):
    d = ((points[:, None] - centers[None]) ** 2).sum(-1)
    return d.argmin(1)

def update(points, labels, centers):
    for k in range(len(centers)):
        centers[k] = points[labels == k].mean(0)     # in place

# %%
centers = Z[[0, 1, 2]].copy()
start = centers.copy()
own = assign(Z, centers)
for i in range(20):
    update(Z, own, centers)
    new = assign(Z, centers)
    if (new == own).all():
        break
    own = new
print("steps:", i, "moved:", (centers != start).any())

# %%
from sklearn.metrics import adjusted_rand_score, silhouette_score
round(adjusted_rand_score(own, truth), 3), round(silhouette_score(Z, labels), 3)

# %%
results = pd.DataFrame({"kmeans": labels, "own": own})
results["tree"] = AgglomerativeClustering(3).fit_predict(Z)
results["dbscan"] = DBSCAN(eps=0.5).fit(Z).labels_
results.head()

# %%
results.nunique()

# %%
# PCA by hand
cov = np.cov(X, rowvar=False)
values, vectors = np.linalg.eigh(cov)
order = values.argsort()[::-1]
values, vectors = values[order], vectors[:, order]
(values / values.sum()).round(3)

# %%
back = pca.inverse_transform(Z)
err = np.abs(back - X).mean()
print(f"{err:.4f}")

# %%
components = pca.components_
components *= -1              # somebody flips the sign
flipped = pca.transform(X)
np.allclose(flipped, -Z), components is pca.components_

# %%
from scipy.cluster.hierarchy import linkage, fcluster
tree = linkage(Z[:10], "ward")
fcluster(tree, 3, "maxclust")

# %%
groups = {int(k): X[labels == k] for k in np.unique(labels)}
for k, members in groups.items():
    members += 1
print({k: m.mean().round(2) for k, m in groups.items()}, X.mean().round(6))
