# %% [markdown]
# needs: bokeh

# %%
from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure
from bokeh.io import curdoc
source = ColumnDataSource({"x": [1, 2], "y": [3, 4]})
p = figure(width=200, title="t")
r = p.scatter("x", "y", source=source)
print(r.data_source is source, p.width)

# %%
source.data["x"] = [5, 6]
p.title.text = "new"
print(r.data_source.data["x"], p.title.text)

# %%
heard = []
source.on_change("data", lambda attr, old, new: heard.append(attr))
source.data = {"x": [0], "y": [0]}
print(heard, p.renderers[0] is r)

# %%
p.x_range = Range1d(0, 9)
source.patch({"x": [(0, 7)]})
print(p.x_range.end, source.data["x"])

# %%
r.glyph.fill_color = "red"
print(r.glyph.fill_color, heard[:1], p.select_one({"type": ColumnDataSource}) is source)

# %%
# raises: AttributeError
figure(nonsense=2)
