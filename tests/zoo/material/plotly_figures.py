# %% [markdown]
# needs: plotly

# %%
import plotly.graph_objects as go, plotly.io as pio
pio.templates.default = "plotly_white"
fig = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], name="a"))
trace = fig.data[0]
print(trace.name, fig.layout.template.layout.paper_bgcolor)

# %%
trace.y = [5, 6]
fig.update_layout(title="T", width=300)
print(fig.data[0].y, fig.layout.title.text, fig.data[0] is trace)

# %%
fig.add_bar(x=[1], y=[9])
fig.layout.xaxis.range = [0, 5]
print(len(fig.data), fig.layout.xaxis.range)

# %%
pio.templates["zoo"] = go.layout.Template(layout={"font": {"size": 21}})
pio.templates.default = "zoo"
print(go.Figure().layout.template.layout.font.size)

# %%
fig.data[1].marker.color = "red"
print(fig.to_dict()["data"][1]["marker"], pio.templates.default, trace.parent is fig)

# %%
# raises: ValueError
fig.add_scatter(nonsense=1)
