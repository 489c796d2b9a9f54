# %% [markdown]
# needs: pendulum

# %%
import pendulum
t = pendulum.datetime(2024, 3, 30, 12, tz="Europe/Paris")
tz = t.timezone
print(t.add(days=1), pendulum.timezone("Europe/Paris") is tz)

# %%
d = t.add(months=1) - t
print(d.in_days(), d.start is t, t.timezone is tz)

# %%
pendulum.set_locale("fr")
pendulum.week_starts_at(pendulum.SUNDAY)
print(t.format("dddd"), t.start_of("week").to_date_string())

# %%
print(t.format("MMMM"), pendulum.get_locale(), t.start_of("week").to_date_string())

# %%
print([x.day for x in pendulum.interval(t, t.add(days=2)).range("days")], d.in_words())

# %%
# raises: ParserError
pendulum.parse("not a date")
