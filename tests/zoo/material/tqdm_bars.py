# %% [markdown]
# needs: tqdm

# %%
import sys
from tqdm import tqdm, trange
seen = [i for i in trange(3, file=sys.stdout, disable=True)]
bar = tqdm(total=10, disable=True)
print(seen, bar.n)

# %%
done = tqdm(range(4), file=sys.stdout, ncols=30, bar_format="{n_fmt}/{total_fmt}", mininterval=1000)
for i in done:
    pass
print(done.n, done.total)

# %%
done.n = 2
print(done.n, done.disable)

# %%
class Loud(tqdm):
    def say(self):
        return f"{self.n} of {self.total}"
l = Loud(total=5, disable=True)
print(l.total if hasattr(l, "total") else "none", done.format_dict["n"])

# %%
print(isinstance(l, tqdm), l.disable, done.n)
