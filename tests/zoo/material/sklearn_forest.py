# %% [markdown]
# needs: sklearn, numpy

# %%
from sklearn.ensemble import RandomForestClassifier
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer
data = load_iris(as_frame=True)
forest = RandomForestClassifier(5, random_state=0, warm_start=True)
print(data.frame.shape)

# %%
forest.fit(data.data, data.target)
first = forest.estimators_[0]
print(round(forest.score(data.data, data.target), 3), first.tree_.node_count)

# %%
forest.n_estimators = 8
forest.fit(data.data, data.target)
print(len(forest.estimators_), forest.estimators_[0] is first)

# %%
v = CountVectorizer(token_pattern=r"\w+")
m = v.fit_transform(["a b a", "b c"])
data["extra"] = v
print(v.vocabulary_, m.toarray(), data.extra is v)

# %%
v.vocabulary_["zzz"] = 3
print(sorted(data.extra.vocabulary_), first.tree_.max_depth, forest.classes_)
