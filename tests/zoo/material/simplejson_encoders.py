# %% [markdown]
# needs: simplejson

# %%
import simplejson as json
from decimal import Decimal
class Enc(json.JSONEncoder):
    seen = 0
    def default(self, o):
        Enc.seen += 1
        return sorted(o)
enc = Enc(sort_keys=True, use_decimal=True)
print(enc.encode({"b": {2, 1}, "a": Decimal("1.10")}))

# %%
print(enc.encode([{3, 1}]), Enc.seen)

# %%
dec = json.JSONDecoder(object_pairs_hook=list, parse_float=Decimal)
print(dec.decode('{"a": 1.10, "b": 2}'))

# %%
raw = json.RawJSON("[1]")
class Obj:
    def for_json(self):
        return {"n": 1}
print(json.dumps({"r": raw, "o": Obj()}, for_json=True), Enc.seen)

# %%
print(dec.decode("[1.50]"), isinstance(enc, json.JSONEncoder))

# %%
# raises: JSONDecodeError
dec.decode("{")
