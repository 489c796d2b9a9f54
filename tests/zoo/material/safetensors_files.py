# %% [markdown]
# needs: safetensors, numpy

# %%
import numpy as np, os
from safetensors import safe_open
from safetensors.numpy import save, load, save_file
w = {"a": np.arange(6, dtype="float32").reshape(2, 3), "b": np.ones(2, "int8")}
blob = save(w, metadata={"k": "v"})
print(len(blob))

# %%
back = load(blob)
back["a"][0, 0] = 9
print(back["a"], sorted(back), w["a"][0, 0])

# %%
save_file(back, "w.safetensors")
with safe_open("w.safetensors", "numpy") as f:
    part = f.get_slice("a")[:, 1:]
print(part, os.path.exists("w.safetensors"))

# %%
part[0, 0] = -1
w["c"] = part
print(w["c"] is part, back["a"][0, 0], load(save(w))["c"])

# %%
# raises: SafetensorError
load(b"bad")
