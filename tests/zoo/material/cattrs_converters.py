# %% [markdown]
# needs: cattrs, attrs

# %%
import cattrs
from attrs import define
from datetime import date
conv = cattrs.Converter()
conv.register_unstructure_hook(date, lambda d: d.isoformat())
conv.register_structure_hook(date, lambda v, _: date.fromisoformat(v))
@define
class Run:
    day: date
    tags: set[str]
print(conv.unstructure(date(2024, 1, 2)))

# %%
r = conv.structure({"day": "2024-05-01", "tags": ["a"]}, Run)
print(r, type(r) is Run)

# %%
@define
class Batch:
    runs: list[Run]
b = Batch([r, r])
print(conv.unstructure(b)["runs"][0]["day"], b.runs[0] is r)

# %%
conv.register_unstructure_hook(date, lambda d: d.year)
r.tags.add("z")
print(sorted(b.runs[1].tags), cattrs.Converter.__name__)

# %%
other = conv.copy()
print(other.unstructure(date(2020, 1, 1)), conv.structure({"runs": []}, Batch))

# %%
# raises: ClassValidationError
conv.structure({"day": "x", "tags": 1}, Run)
