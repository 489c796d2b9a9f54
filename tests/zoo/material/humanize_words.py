# %% [markdown]
# needs: humanize

# %%
import humanize, datetime as dt
print(humanize.intcomma(12345), humanize.naturalsize(10**6))

# %%
humanize.i18n.activate("fr")
print(humanize.naturaldelta(dt.timedelta(days=3)), humanize.intword(10**6))

# %%
print(humanize.naturaldelta(dt.timedelta(hours=5)), humanize.apnumber(5))

# %%
humanize.i18n.deactivate()
print(humanize.naturaldelta(dt.timedelta(hours=5)))

# %%
sizes = {n: humanize.naturalsize(n, binary=True) for n in (1, 2048)}
print(sizes, humanize.naturaltime(dt.timedelta(seconds=30)))
