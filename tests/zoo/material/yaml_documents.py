# %% [markdown]
# needs: yaml

# %%
import yaml
text = """
base: &b {lr: 0.1, steps: [1, 2]}
run1: *b
run2: {<<: *b, lr: 0.5}
"""
doc = yaml.safe_load(text)
print(doc["run1"] is doc["base"], doc["run2"])

# %%
doc["base"]["steps"].append(3)
print(doc["run1"]["steps"], doc["run2"]["steps"], yaml.safe_dump(doc, sort_keys=True))

# %%
class Unit(yaml.YAMLObject):
    yaml_tag = "!unit"
    yaml_loader = yaml.SafeLoader
    def __init__(self, n):
        self.n = n
u = yaml.safe_load("!unit {n: 4}")
print(type(u).__name__, u.n)

# %%
v = yaml.safe_load("[!unit {n: 5}, !unit {n: 6}]")
def show(dumper, value):
    return dumper.represent_scalar("!set", ",".join(sorted(value)))
yaml.add_representer(frozenset, show)
print([x.n for x in v], yaml.dump(frozenset("ab")))

# %%
print(yaml.dump(frozenset("cd")), isinstance(v[0], Unit), yaml.safe_load("!unit {n: 7}").n)

# %%
# raises: ParserError
yaml.safe_load("a: [")
