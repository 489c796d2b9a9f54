# %% [markdown]
# # Plots

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np

# %%
x = np.linspace(0, 2 * np.pi, 50)
plt.plot(x, np.sin(x))
plt.title("sine")
plt.show()

# %%
plt.plot(x, np.cos(x), "r--")

# %%
plt.rcParams["figure.figsize"] = (4, 3)
plt.rcParams.update({"axes.grid": True})
plt.scatter(x, np.sin(x) ** 2);

# %%
fig, ax = plt.subplots()
line, = ax.plot(x, x)

# %%
ax.plot(x, x ** 2, label="square")
line.set_color("black")
ax.legend()
fig

# %%
ax.set_title("grown later")
print(len(ax.lines), ax.figure is fig, line in ax.lines, ax.get_title())

# %%
fig

# %%
fig2, axes = plt.subplots(2, 2, figsize=(5, 4), sharex=True)
for i, axis in enumerate(axes.flat):
    axis.hist(np.random.default_rng(i).normal(size=40), bins=8)
fig2.tight_layout()
plt.close(fig2)

# %%
axes[0, 0].set_ylabel("n")
axes.shape, axes[0, 0].figure is fig2

# %%
fig2

# %%
def styled(ax, **kwargs):
    ax.spines["top"].set_visible(False)
    ax.set(**kwargs)
    return ax

styled(axes[1, 1], xlabel="value")
fig2.savefig("hist.png")
import os
os.path.exists("hist.png")

# %%
data = {"apples": 3, "pears": 5, "plums": 2}
fig3 = plt.figure(figsize=(3, 2))
bars = plt.bar(data.keys(), data.values())
bars[1].set_color("green")
plt.xticks(rotation=45)
plt.close()
fig3

# %%
plt.get_fignums(), bars[1].get_height()

# %%
img = np.arange(12).reshape(3, 4)
plt.imshow(img, cmap="gray")
plt.colorbar()
plt.show()

# %%
with plt.style.context("ggplot"):
    plt.plot([1, 3, 2])
    plt.show()
plt.rcParams["axes.grid"]

# %%
from IPython.display import display, HTML, Markdown
display(HTML("<b>done</b>"), Markdown("*done*"))
fig, axs = plt.subplots(1, 3, figsize=(6, 2))

# %%
axs[0].pie([1, 2])
axs[1].barh(["a", "b"], [1, 2])
axs[2].boxplot([np.arange(5), np.arange(9)])
fig

# %%
# raises: ValueError
plt.plot([1, 2], [1, 2, 3])

# %%
plt.close("all")
plt.get_fignums()
