# %% [markdown]
# needs: arrow

# %%
import arrow
t = arrow.get("2024-02-29T10:00:00+01:00")
spans = {"t": t, "day": t.span("day")}
print(t.shift(years=1), t.humanize(t.shift(hours=-2)))

# %%
class Stamp(arrow.Arrow):
    def quarter_name(self):
        return f"Q{self.quarter}"
factory = arrow.ArrowFactory(Stamp)
s = factory.get(2024, 5, 1)
print(s.quarter_name(), spans["t"] is t)

# %%
late = s.to("US/Pacific")
print(late, type(late).__name__, sorted([s, late]) == [s, late], s.tzinfo)

# %%
print([d.format("DD") for d in arrow.Arrow.range("day", t, limit=2)], s.dehumanize("in 2 days"))

# %%
print(hash(t) == hash(spans["t"]), late.quarter_name(), factory.get("2020").quarter_name())

# %%
# raises: ParserError
arrow.get("tomorrow-ish")
