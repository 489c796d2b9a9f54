# %% [markdown]
# # Which text is about what?

# %%
import re
from collections import Counter
import numpy as np
import pandas as pd

# %%
texts = [
    "The cat sat on the mat", "Dogs and cats are pets", "My dog chased the cat", "A pet needs food and love",
    "The engine of the car is loud", "Cars need fuel", "Fast cars and loud engines", "He repairs the motor of his car",
    "The kitten sleeps", "The garage fixed my engine",
]
labels = ["pet"] * 4 + ["car"] * 4 + ["pet", "car"]
df = pd.DataFrame({"text": texts, "label": labels})
df.tail(3)

# %%
STOP = {"the", "a", "and", "of", "is", "on", "my", "his", "are", "he"}

def tokenize(text):
    """Words without stop words, without a plural s."""
    words = re.findall(r"[a-z]+", text.lower())
    return [re.sub(r"s$", "", w) for w in words if w not in STOP]

tokenize("The dogs and the cats")

# %%
df["tokens"] = df["text"].map(tokenize)
df["n"] = df["tokens"].str.len()
df[["tokens", "n"]].head(3)

# %%
vocabulary = Counter()
for tokens in df["tokens"]:
    vocabulary.update(tokens)
vocabulary.most_common(4)

# %%
first = df.loc[0, "tokens"]
first.append("purr")
df.loc[0, "tokens"]

# %%
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
cv = CountVectorizer(tokenizer=tokenize, token_pattern=None)
counts = cv.fit_transform(df["text"])
counts

# %%
counts.shape, counts.nnz, sorted(cv.vocabulary_)[:5]

# %%
STOP.add("need")
cv.build_tokenizer()("cats need food") , cv.tokenizer is tokenize

# %%
model = make_pipeline(TfidfVectorizer(tokenizer=tokenize, token_pattern=None), MultinomialNB())
model.fit(df["text"][:8], df["label"][:8])
model.predict(["The cat and the dog", "a loud motor"])

# %%
probs = pd.DataFrame(model.predict_proba(df["text"][8:]), columns=model.classes_)
probs.round(3)

# %%
def tokenize(text):            # forgot the stop words
    return text.lower().split()

model.predict(["The dogs"]), model[0].tokenizer is tokenize, len(model[0].vocabulary_)

# %%
errors = [(t, l, p) for t, l, p in zip(df.text, df.label, model.predict(df.text)) if l != p]
errors

# %%
# Bayes by hand
class Bayes:
    def __init__(self):
        self.words = {}
        self.docs = Counter()

    def learn(self, text, label):
        self.words.setdefault(label, Counter()).update(tokenize(text))
        self.docs[label] += 1
        return self

    def score(self, text, label):
        total = sum(self.words[label].values())
        prior = np.log(self.docs[label] / sum(self.docs.values()))
        return prior + sum(np.log((self.words[label][w] + 1) / (total + 100)) for w in tokenize(text))

# %%
bayes = Bayes()
for text, label in zip(texts, labels):
    bayes.learn(text, label)
bayes.docs

# %%
def predict(self, text):
    return max(sorted(self.words), key=lambda label: self.score(text, label))

Bayes.predict = predict
bayes.predict("my cat"), bayes.predict("new engine")

# %%
car_words = bayes.words["car"]
car_words["tesla"] += 5
round(float(bayes.score("tesla", "car")), 3), car_words is bayes.words["car"]

# %%
# raises: KeyError
bayes.score("cat", "plane")

# %%
tfidf = model[0]
order = np.argsort(tfidf.idf_)[:3]
tfidf.get_feature_names_out()[order], tfidf.idf_[order].round(3)
