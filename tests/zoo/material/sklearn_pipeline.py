# %% [markdown]
# needs: sklearn, numpy

# %%
import numpy as np, sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.linear_model import Ridge
sklearn.set_config(display="text")
X = np.arange(12.0).reshape(6, 2) ** 1.5
y = X @ [1.0, -2.0]

# %%
class Centre(TransformerMixin, BaseEstimator):
    def __init__(self, by="mean"):
        self.by = by
    def fit(self, X, y=None):
        self.middle_ = getattr(np, self.by)(X, axis=0)
        return self
    def transform(self, X):
        return X - self.middle_
centre = Centre()
model = make_pipeline(centre, Ridge(alpha=1e-6))
model

# %%
model.fit(X, y)
print(model[0] is centre, centre.middle_.round(2), model.predict(X[:2]).round(3))

# %%
model.set_params(centre__by="median")
other = clone(model).fit(X, y)
print(centre.by, other[0].middle_.round(2), centre.middle_.round(2))

# %%
X[0, 0] = 50
model.fit(X, y)
print(sklearn.get_config()["display"], model.named_steps["ridge"] is model[-1], round(model.score(X, y), 4))

# %%
# raises: NotFittedError
Ridge().predict(X)
