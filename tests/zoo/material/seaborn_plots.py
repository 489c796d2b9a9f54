# %% [markdown]
# needs: seaborn, matplotlib, pandas

# %%
import seaborn as sns, pandas as pd, matplotlib as mpl
sns.set_theme(style="whitegrid", palette="deep")
df = pd.DataFrame({"k": list("aabb"), "v": [1, 2, 3, 5.0]})
print(mpl.rcParams["axes.grid"], sns.color_palette()[0])

# %%
ax = sns.barplot(data=df, x="k", y="v", errorbar=None)
print([p.get_height() for p in ax.patches])

# %%
ax.set_title("bars")
sns.set_palette("bright")
print(ax.get_title(), ax.figure.axes[0] is ax)

# %%
grid = sns.FacetGrid(df, col="k")
grid.map(sns.scatterplot, "v", "v")
print(len(grid.axes.flat), sns.color_palette()[0])

# %%
print(grid.axes.flat[0].get_title(), grid.fig is grid.axes.flat[0].figure, grid.data is df)
