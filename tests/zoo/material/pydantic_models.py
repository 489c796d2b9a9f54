# %% [markdown]
# needs: pydantic

# %%
from pydantic import BaseModel, Field, PrivateAttr, field_validator, computed_field, ValidationError
class Layer(BaseModel):
    size: int = Field(gt=0)
    _uses: int = PrivateAttr(default=0)
class Net(BaseModel, validate_assignment=True):
    name: str
    layers: list[Layer] = []
    @field_validator("name")
    @classmethod
    def lower(cls, v):
        return v.lower()
    @computed_field
    @property
    def total(self) -> int:
        return sum(l.size for l in self.layers)
layer = Layer(size=3)
net = Net(name="BIG", layers=[layer, layer])
net

# %%
net.layers[0].size = 10
layer._uses += 1
print(net.layers[0] is net.layers[1], net.total, net.model_dump())

# %%
class Deep(Net):
    depth: int = 2
deep = Deep(name="Deep", layers=net.layers)
print(deep.layers[0] is layer, deep.layers is net.layers, sorted(deep.model_fields_set))

# %%
net.name = "OTHER"
print(net.name, layer._uses, Deep.model_json_schema()["title"] if "title" in Deep.model_json_schema() else "ref")

# %%
try:
    net.name = 5
except ValidationError as error:
    problem = error
print(problem.error_count(), type(deep).__mro__[1] is Net)

# %%
# raises: ValidationError
Layer(size=-1)
