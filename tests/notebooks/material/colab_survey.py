# %% [markdown]
# # A survey, with pandas and styled plots

# %%
import io, json, textwrap
import numpy as np, pandas as pd
import matplotlib as mpl, matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, MaxNLocator
from IPython.display import display, Markdown, HTML, JSON
plt.style.use("ggplot")
plt.rcParams["figure.figsize"] = 4, 2.5
mpl.rcParams.update({"axes.spines.top": False, "font.size": 9})
pd.set_option("display.max_rows", 8); pd.options.display.float_format = "{:.2f}".format
np.random.seed(1)

# %%
csv = textwrap.dedent("""
    city,date,temp,rain
    Oslo,2024-01-01,-3.5,0
    Oslo,2024-02-01,-1.0,12
    Rome,2024-01-01,8.5,60
    Rome,2024-02-01,,45
    Cairo,2024-01-01,14,
    Cairo,2024-02-01,15.5,1
""").strip()
df = pd.read_csv(io.StringIO(csv), parse_dates=["date"], dtype={"city": "category"})
df.info(memory_usage=False)
df

# %%
df["temp"] = df.groupby("city", observed=True)["temp"].transform(lambda s: s.fillna(s.mean()))
df.loc[df.rain.isna(), "rain"] = 0
df = df.assign(wet=df.rain > 10, month=df.date.dt.month_name())
df.describe(include="all").T.head(3)

# %%
pivot = df.pivot_table(index="city", columns="month", values="temp", observed=True, margins=True)
pivot

# %%
summary = (
    df.groupby("city", observed=True)
    .agg(mean_temp=("temp", "mean"), total=("rain", "sum"), last=("date", "max"))
    .query("total < 100")
    .sort_values("mean_temp", ascending=False)
)
display(summary)
display(Markdown("**bold**"), HTML("<i>it</i>"))

# %%
fig, (left, right) = plt.subplots(1, 2, sharey=False, constrained_layout=True)
df.plot.bar(x="city", y="temp", ax=left, legend=False, color="C1")
twin = right.twinx()
right.hist(np.random.normal(size=200), bins=15, alpha=0.6)
twin.plot([-2, 0, 2], [0, 1, 0], "k--", lw=1)
right.xaxis.set_major_locator(MaxNLocator(3))
right.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0f}×"))
fig.suptitle("two of them")
plt.show()

# %%
def heat(table, ax=None, **kwargs):
    """As seaborn does it."""
    ax = ax or plt.gca()
    image = ax.imshow(table, **kwargs)
    ax.set_xticks(range(table.shape[1]), table.columns, rotation=45)
    ax.set_yticks(range(table.shape[0]), table.index)
    for (i, j), value in np.ndenumerate(table.to_numpy()):
        ax.text(j, i, f"{value:.1f}", ha="center", color="white")
    return image

with plt.style.context("dark_background"):
    plt.figure()
    heat(pivot, cmap="coolwarm")

# %%
with mpl.rc_context({"lines.linewidth": 4}):
    ax = pd.Series([1, 3, 2], index=pd.date_range("2024", periods=3)).plot(title="thick")

# %%
ax.set_title("changed in the next cell")
ax.axhline(2, ls=":")
ax.figure

# %%
print(plt.rcParams["figure.figsize"], plt.rcParams["axes.facecolor"], mpl.rcParams["font.size"], pd.get_option("display.max_rows"))

# %%
long = df.melt(id_vars=["city", "date"], value_vars=["temp", "rain"]).set_index(["city", "variable", "date"])
wide = long.unstack("variable").droplevel(0, axis=1)
wide

# %%
cut = pd.cut(df.temp, [-10, 0, 10, 20], labels=["cold", "mild", "warm"])
pd.crosstab(df.city, cut), cut.cat.categories.tolist()

# %%
view = df[["city", "temp"]]
view.loc[0, "temp"] = 99
df.loc[0, "temp"], view.loc[0, "temp"]

# %%
# raises: KeyError
df["humidity"]

# %%
merged = df.merge(pd.DataFrame({"city": ["Oslo", "Rome"], "country": ["NO", "IT"]}), on="city", how="left", indicator=True)
merged.country.isna().sum(), merged._merge.value_counts().to_dict()

# %%
roll = pd.Series(np.arange(6.0)).rolling(3, center=True).mean()
roll.to_dict()

# %%
df.to_json("survey.json", orient="records", date_format="iso")
json.load(open("survey.json"))[0]

# %%
mpl.rcdefaults(); plt.rcParams["figure.dpi"] = 50
plt.plot(df.temp, df.rain, "o")
plt.xlabel("temp"); plt.show()
pd.reset_option("all") if False else pd.reset_option("display.max_rows")
len(plt.get_fignums())
