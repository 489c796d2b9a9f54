# %% [markdown]
# needs: dateutil

# %%
from datetime import datetime
from dateutil import tz, rrule, relativedelta, parser
oslo = tz.gettz("Europe/Oslo")
start = datetime(2024, 3, 30, 12, tzinfo=oslo)
rule = rrule.rrule(rrule.DAILY, count=3, dtstart=start)
print(rule[1], tz.gettz("Europe/Oslo") is oslo)

# %%
step = relativedelta.relativedelta(months=+1, weekday=relativedelta.FR(-1))
print(start + step, start.tzinfo is oslo, tz.UTC is tz.tzutc())

# %%
days = rrule.rruleset(cache=True)
days.rrule(rule)
days.exdate(start)
print(list(days))

# %%
class Info(parser.parserinfo):
    MONTHS = [("januar", "jan")] + list(parser.parserinfo.MONTHS[1:])
info = Info(dayfirst=True)
print(parser.parse("3 januar 2024", info), step.months)

# %%
days.rdate(datetime(2025, 1, 1, tzinfo=oslo))
print(len(list(days)), parser.parse("4/5/2024", info), oslo is start.tzinfo)

# %%
# raises: ParserError
parser.parse("nonsense")
