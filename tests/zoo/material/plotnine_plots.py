# %% [markdown]
# needs: plotnine

# %%
import plotnine as p9, pandas as pd
df = pd.DataFrame({'x': [1, 2, 3], 'y': [3, 1, 2], 'g': list('aab')})
p = p9.ggplot(df, p9.aes('x', 'y', color='g')) + p9.geom_point()

# %%
p9.theme_set(p9.theme_bw()); p9.options.figure_size = (3, 2)
type(p9.theme_get()).__name__

# %%
type(p9.theme_get()).__name__, p9.options.figure_size

# %%
p9.theme_set(p9.theme_void())
q = p + p9.geom_line() + p9.facet_wrap('g')
len(q.layers), len(p.layers)

# %%
type(p9.theme_get()).__name__, len(q.layers), q.data is df

# %%
f = q.draw(); len(f.axes)

# %%
df.loc[0, 'y'] = 9
len(q.draw().axes), q.data.y.tolist()

# %%
p9.options.dpi = 50; p9.options.get_option('dpi') if hasattr(p9.options, 'get_option') else p9.options.dpi

# %%
p9.options.dpi, f.axes[0].get_title()
