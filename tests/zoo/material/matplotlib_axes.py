# %% [markdown]
# needs: matplotlib, numpy

# %%
import matplotlib.pyplot as plt, matplotlib as mpl, numpy as np
mpl.rcParams["lines.linewidth"] = 3.5
fig, axes = plt.subplots(1, 2, sharey=True)
(line,) = axes[0].plot([0, 1, 2], [0, 1, 4], label="sq")
print(line.get_linewidth(), plt.gca() is axes[1])

# %%
line.set_ydata([0, 2, 8])
axes[1].set_ylim(-5, 5)
axes[0].legend()
print(axes[0].get_ylim(), axes[0].lines[0] is line, fig.axes[0] is axes[0])

# %%
bars = axes[1].bar(["a", "b"], [1, 2])
axes[1].set_title("bars")
cmap = mpl.colormaps["viridis"].with_extremes(bad="red")
plt.sca(axes[0])
plt.title("left")
print(axes[0].get_title(), len(bars.patches))

# %%
bars[0].set_height(4)
note = axes[1].annotate("top", (0, 4), arrowprops={"arrowstyle": "->"})
print(axes[1].patches[0].get_height(), cmap(np.nan), plt.get_fignums())

# %%
class Mark(mpl.patches.Circle):
    def grow(self):
        self.set_radius(self.get_radius() * 2)
mark = Mark((0, 0), 1)
axes[1].add_patch(mark)
fig.canvas.draw()
print(fig.axes[1].patches[-1] is mark, mpl.rcParams["lines.linewidth"])

# %%
mark.grow()
plt.close(fig)
print(mark.get_radius(), plt.get_fignums(), mark.axes is axes[1], note.figure is fig)
