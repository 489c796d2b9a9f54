# %% [markdown]
# needs: msgpack

# %%
import msgpack
from datetime import date
def default(o):
    if isinstance(o, date):
        return msgpack.ExtType(5, o.isoformat().encode())
    raise TypeError(f"no {o!r}")
packer = msgpack.Packer(default=default)
b = packer.pack([date(2024, 1, 1), {"a": (1, 2)}])
print(len(b), b[:2])

# %%
back = msgpack.unpackb(b, ext_hook=lambda c, d: date.fromisoformat(d.decode()), use_list=False)
print(back, packer.pack(1))

# %%
un = msgpack.Unpacker()
un.feed(b"\x01\x02")
print(next(un))

# %%
un.feed(b"\x03")
print(list(un))

# %%
ts = msgpack.Timestamp(5, 10)
print(ts, packer.pack(ts), msgpack.unpackb(packer.pack(ts)) == ts)

# %%
# raises: TypeError
msgpack.packb(object)
