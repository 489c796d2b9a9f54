# %% [markdown]
# needs: ipywidgets

# %%
import ipywidgets as w
slider = w.IntSlider(value=3, max=10)
label = w.Label("x")
box = w.HBox([slider, label])
print(slider.value, box.children[0] is slider)

# %%
slider.value = 20
print(slider.value)

# %%
log = []
slider.observe(lambda c: log.append(c["new"]), names="value")
slider.value = 5
print(log)

# %%
slider.value = 6
label.style.text_color = "red"
print(log, box.children[1].style.text_color, box.children[0] is slider)

# %%
drop = w.Dropdown(options=[("a", 1), ("b", 2)], value=2)
w.dlink((slider, "value"), (label, "value"), transform=str)
slider.value = 9
print(drop.label, label.value)

# %%
slider.value = 1
print(label.value, log)
