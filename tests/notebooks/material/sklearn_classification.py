# %% [markdown]
# # Predicting flowers: a pipeline

# %%
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, OneHotEncoder
from sklearn.linear_model import LogisticRegression

# %%
# state: no iris, its own pickling forgets which keys are deprecated
iris = load_iris(as_frame=True)
df = iris.frame
df["target"].value_counts().tolist(), iris.target_names.tolist()

# %%
df.describe().round(2)

# %%
X, y = df[iris.feature_names], df["target"]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
X_train.shape, X_test.shape

# %%
pipe = Pipeline([("scale", StandardScaler()), ("model", LogisticRegression(max_iter=200))])
pipe

# %%
pipe.fit(X_train, y_train)
print(f"accuracy {pipe.score(X_test, y_test):.3f}")

# %%
scaler = pipe.named_steps["scale"]
model = pipe["model"]
scaler is pipe.steps[0][1], scaler.mean_.round(3)

# %%
from sklearn.metrics import accuracy_score, classification_report, confusion_matrix
pred = pipe.predict(X_test)
print(classification_report(y_test, pred, digits=3))
confusion_matrix(y_test, pred)

# %%
scores = {}
def compare(name, estimator):
    estimator.fit(X_train, y_train)
    scores[name] = round(estimator.score(X_test, y_test), 3)
    return estimator

compare("logistic", pipe) is pipe

# %%
from sklearn.tree import DecisionTreeClassifier, export_text
from sklearn.neighbors import KNeighborsClassifier
tree = compare("tree", DecisionTreeClassifier(max_depth=2, random_state=0))
print(export_text(tree, feature_names=list(iris.feature_names)))

# %%
from sklearn.ensemble import RandomForestClassifier
forest = compare("forest", RandomForestClassifier(n_estimators=10, random_state=1))
importance = pd.Series(forest.feature_importances_, index=iris.feature_names).sort_values()
importance.round(3)

# %%
for k in (1, 5, 15):
    compare(f"knn {k}", KNeighborsClassifier(k))
scores

# %%
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone

class Ratio(BaseEstimator, TransformerMixin):
    """Adds petal length / petal width."""
    def __init__(self, eps=1e-3):
        self.eps = eps
    def fit(self, X, y=None):
        self.seen_ = len(X)
        return self
    def transform(self, X):
        X = np.asarray(X)
        return np.c_[X, X[:, 2] / (X[:, 3] + self.eps)]

# %%
better = make_pipeline(Ratio(), StandardScaler(), LogisticRegression(max_iter=200))
compare("ratio", better)
better[0].seen_, better[-1].coef_.shape

# %%
better.set_params(ratio__eps=0.5)
again = clone(better)
print(again[0].eps, again is better, hasattr(again[0], "seen_"))

# %%
# raises: NotFittedError
again.predict(X_test)

# %%
# raises: ValueError
pipe.predict(X_test.iloc[:, :2])

# %%
from sklearn.model_selection import cross_val_score
cv = cross_val_score(pipe, X, y, cv=3)
cv.round(3), cv.mean().round(3)

# %%
from sklearn.compose import ColumnTransformer
toy = pd.DataFrame({"size": [1., 2., 3., 4.], "color": ["r", "g", "r", "b"]})
both = ColumnTransformer([("num", StandardScaler(), ["size"]), ("cat", OneHotEncoder(), ["color"])])
both.fit_transform(toy).round(2)

# %%
both.get_feature_names_out()

# %%
best = max(scores, key=scores.get)
best, model.coef_.round(2)[0], type(model).__name__
