# %% [markdown]
# needs: babel

# %%
from babel import Locale, numbers, dates
from babel.messages.catalog import Catalog
from datetime import date
de = Locale("de", "DE")
print(numbers.format_currency(1234.5, "EUR", locale=de), de.display_name)

# %%
cat = Catalog(locale="de", domain="zoo")
cat.add("cat", "Katze", locations=[("a.py", 3)])
print(dates.format_date(date(2024, 5, 1), locale=de), len(cat))

# %%
m = cat.get("cat")
m.flags.add("fuzzy")
print(m.fuzzy, cat["cat"] is m, de.languages["fr"])

# %%
cat.add("dog", "Hund")
print([x.id for x in cat], m.string, cat.locale == de)

# %%
print(numbers.parse_decimal("1.000,5", locale=de), de.number_symbols["latn"]["decimal"], m.fuzzy)

# %%
# raises: UnknownLocaleError
Locale.parse("xx_YY")
