# %% [markdown]
# needs: msgspec

# %%
import msgspec
class Job(msgspec.Struct, kw_only=True, tag=True):
    name: str
    tags: list[str] = []
    after: "Job | None" = None
first = Job(name="a")
second = Job(name="b", after=first)
print(second)

# %%
first.tags.append("x")
jobs = {first.name: first, second.name: second}
print(second.after.tags, jobs["a"] is second.after)

# %%
class Big(Job, frozen=True, eq=True, order=True, kw_only=True):
    size: int
encoder = msgspec.json.Encoder()
print(encoder.encode(second), Big(name="c", size=1) < Big(name="c", size=2))

# %%
decoder = msgspec.json.Decoder(Job)
first.name = "renamed"
back = decoder.decode(encoder.encode(second))
print(back == second, back.after.name, jobs["a"].name)

# %%
big = msgspec.structs.replace(Big(name="d", size=3), size=4)
print(big.size, Job.__struct_fields__, msgspec.structs.asdict(first))

# %%
# raises: ValidationError
decoder.decode(b'{"type":"Job"}')
