# %% [markdown]
# needs: jsonschema

# %%
import jsonschema
from jsonschema import Draft202012Validator, FormatChecker, validators
schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}
v = Draft202012Validator(schema)
print(v.is_valid({"n": 1}), v.is_valid({"n": -1}))

# %%
schema["properties"]["s"] = {"type": "string", "format": "short"}
checker = FormatChecker()
@checker.checks("short")
def is_short(text):
    return len(text) < 3
print([e.message for e in v.iter_errors({"n": -1, "s": 1})], v.schema is schema)

# %%
v2 = Draft202012Validator(schema, format_checker=checker)
print(v2.is_valid({"n": 1, "s": "long"}), "short" in checker.checkers)

# %%
def even(validator, value, instance, schema):
    if value and instance % 2:
        yield jsonschema.ValidationError(f"{instance} is odd")
Even = validators.extend(Draft202012Validator, {"even": even})
print([e.message for e in Even({"even": True}).iter_errors(3)])

# %%
tree = jsonschema.ErrorTree(v.iter_errors({"n": "x"}))
print(list(tree["n"].errors), Even({"even": True}).is_valid(4), Even is type(Even({})))

# %%
# raises: ValidationError
jsonschema.validate({}, schema)
