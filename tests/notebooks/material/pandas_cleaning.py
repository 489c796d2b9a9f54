# %% [markdown]
# # Cleaning a survey

# %%
import pandas as pd
import numpy as np

pd.options.display.max_columns = 20
pd.set_option("display.width", 120)

# %%
raw = """id,Name, age,city,joined,score
1, Ann ,31,Berlin,2023-01-05,7.5
2,bob,,Paris,2023-02-11,
3,Cem,27,berlin,11/03/2023,8.25
4,Dora,200,Rome,2023-04-01,6
4,Dora,200,Rome,2023-04-01,6
5,Eve,45,,2023-05-20,9.1
"""
with open("survey.csv", "w") as f:
    f.write(raw)

# %%
df = pd.read_csv("survey.csv")
df

# %%
df.info()

# %%
df.columns = [c.strip().lower() for c in df.columns]
df["name"] = df["name"].str.strip().str.title()
df.head(3)

# %%
before = df
df = df.drop_duplicates()
print(len(before), len(df), before is df)

# %%
df.loc[df["age"] > 120, "age"] = np.nan
df["age"] = df["age"].fillna(df["age"].median())
df.age.describe()

# %%
df["city"] = df["city"].str.capitalize().fillna("Unknown").astype("category")
df["city"].cat.categories, df["city"].cat.codes.tolist()

# %%
df["joined"] = pd.to_datetime(df["joined"], format="mixed", dayfirst=False)
df["month"] = df["joined"].dt.month_name()
df[["joined", "month"]]

# %%
view = df["score"]
df.loc[0, "score"] = 10.0
print(view.iloc[0], df["score"].iloc[0])

# %%
# chained assignment does nothing any more
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    df[df.age > 30]["score"] = 0
df.score.tolist()

# %%
df.rename(columns={"score": "points"}, inplace=True)
df.drop(columns="month", inplace=True)
df.set_index("id", inplace=True)
df

# %%
by_city = df.groupby("city", observed=True)
by_city["points"].agg(["mean", "count"]).round(2)

# %%
def spread(s):
    return s.max() - s.min()

summary = by_city.agg(oldest=("age", "max"), spread=("points", spread))
summary

# %%
cities = pd.DataFrame({"city": ["Berlin", "Paris", "Rome"], "country": ["DE", "FR", "IT"]})
merged = df.reset_index().merge(cities, on="city", how="left", indicator=True)
merged

# %%
merged["_merge"].value_counts()

# %%
pivot = merged.pivot_table(index="country", values=["age", "points"], aggfunc="mean")
long = merged.melt(id_vars="name", value_vars=["age", "points"])
print(pivot)
long.tail(3)

# %%
bins = pd.cut(df["age"], [0, 30, 40, 120], labels=["young", "middle", "old"])
df.insert(1, "group", bins)
df.sort_values("age", ascending=False, inplace=True)
df["group"].value_counts(sort=False)

# %%
# raises: KeyError
df["height"]

# %%
stats = {"n": len(df), "frames": [df, merged]}
stats["frames"][0]["rank"] = df["points"].rank(ascending=False)
df[["name", "rank"]]

# %%
stats["frames"][0] is df

# %%
df.attrs["source"] = "survey.csv"
df.to_csv("clean.csv")
pd.read_csv("clean.csv", index_col="id").equals(df), df.attrs

# %%
s = df["points"]
s.iloc[0] = -1
del df["rank"]
df.isna().sum()
