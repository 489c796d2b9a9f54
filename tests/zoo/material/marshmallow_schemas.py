# %% [markdown]
# needs: marshmallow

# %%
from marshmallow import Schema, fields, post_load, validates, ValidationError, EXCLUDE
class User:
    def __init__(self, name, age):
        self.name, self.age = name, age
class UserSchema(Schema):
    class Meta:
        unknown = EXCLUDE
    name = fields.Str(required=True)
    age = fields.Int(load_default=1)
    @post_load
    def make(self, data, **kwargs):
        return User(**data)
schema = UserSchema()
print(schema.dump(User("a", 2)))

# %%
u = schema.load({"name": "b", "x": 1})
print(u.age, type(u) is User)

# %%
class Team(Schema):
    users = fields.List(fields.Nested(UserSchema))
team = Team()
print(team.dump({"users": [u, User("c", 5)]}))

# %%
schema.context_note = "n"
t = team.load({"users": [{"name": "q"}]})
print(t["users"][0].name, schema.fields["age"].load_default)

# %%
# raises: ValidationError
u.age = 50
print(schema.dump(u), Team().load({"users": [{}]}))
