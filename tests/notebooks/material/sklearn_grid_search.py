# %% [markdown]
# # Tuning

# %%
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, KFold, StratifiedKFold
from sklearn.svm import SVC
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
import pandas as pd

np.random.seed(1)

# %%
X, y = make_moons(120, noise=0.25)
X_train, y_train = X[:80], y[:80]
X_test, y_test = X[80:], y[80:]
X[:2].round(3), X_train.base is X

# %%
svm = make_pipeline(StandardScaler(), SVC())
params = {"svc__C": [0.1, 1, 10], "svc__gamma": [0.1, 1.0]}
grid = GridSearchCV(svm, params, cv=3)
grid.fit(X_train, y_train);

# %%
grid.best_params_, round(grid.best_score_, 3)

# %%
table = pd.DataFrame(grid.cv_results_)[["param_svc__C", "param_svc__gamma", "mean_test_score", "rank_test_score"]]
table.sort_values("rank_test_score").head(3).round(3)

# %%
# state: no grid, the times of fitting are in its results
best = grid.best_estimator_
best.score(X_test, y_test), best is grid.best_estimator_

# %%
history = []
def my_score(estimator, X, y):
    value = estimator.score(X, y)
    history.append(round(value, 3))
    return value

# %%
# state: no search, the times of fitting are in its results
from scipy.stats import loguniform
search = RandomizedSearchCV(svm, {"svc__C": loguniform(1e-2, 1e2)}, n_iter=3, cv=2, scoring=my_score, random_state=0)
search.fit(X_train, y_train)
history

# %%
{k: round(v, 4) for k, v in search.best_params_.items()}

# %%
folds = KFold(4, shuffle=True, random_state=3)
sizes = []
for train, test in folds.split(X):
    sizes.append((len(train), len(test), int(test[0])))
sizes

# %%
splitter = StratifiedKFold(3)
splits = list(splitter.split(X, y))
parts = [X[test] for _, test in splits]
[p.shape for p in parts]

# %%
C = 1.0
def error(c):
    return 1 - SVC(C=c).fit(X_train, y_train).score(X_test, y_test)

# %%
curve = {}
while C < 20:
    curve[C] = round(error(C), 3)
    C *= 3
curve

# %%
best_c, best_error = min(curve.items(), key=lambda kv: (kv[1], kv[0]))
print(f"C={best_c} error={best_error:.3f}")

# %%
from sklearn.linear_model import SGDClassifier
clf = SGDClassifier(random_state=0, learning_rate="constant", eta0=0.01)
for epoch in range(3):
    clf.partial_fit(X_train, y_train, classes=[0, 1])
    print(epoch, round(clf.score(X_test, y_test), 3))

# %%
snapshot = clf.coef_
clf.partial_fit(X_train, y_train)
snapshot is clf.coef_, clf.t_

# %%
clf.partial_fit(X_train[:10], y_train[:10])
np.array_equal(snapshot, clf.coef_), clf.coef_.round(3)

# %%
# state: no blob, pickle writes equal strings once if they are one object
import pickle
blob = pickle.dumps(best)
same = pickle.loads(blob)
(same.predict(X_test) == best.predict(X_test)).all()

# %%
import joblib
joblib.dump(clf, "clf.joblib")
back = joblib.load("clf.joblib")
back.coef_.tolist() == clf.coef_.tolist(), np.random.rand()
