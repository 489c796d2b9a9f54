# %% [markdown]
# # untitled8 (copy)

# %%
from math import *
x = 5
student_name = "Kim"
# %matplotlib inline

# %%
x
x + 1

# %%
_ * 2

# %%
Out[4], _

# %%
print("x is", x, "and", sqrt(16), end="")
print(" same line?")
print("a", "b", sep="\n")

# %%
# compare: no, it shows a time
# %time sum(range(1000))

# %%
# compare: no, it shows times
# %timeit -n 10 -r 2 sum(range(10))

# %%
# %%capture cap
print("hidden")
hidden = 1

# %%
cap.stdout, hidden

# %%
# !echo shell says $x
out = !echo one && echo two
out

# %%
# stays: student
student = ({"n": k} for k in range(3))

# %%
from tqdm import tqdm
s = 0
for k in tqdm(range(3), bar_format="{n_fmt}/{total_fmt}", mininterval=0):
    s += k
s

# %%
import warnings
warnings.warn("careful")
def old():
    warnings.warn("old is old", DeprecationWarning, stacklevel=2)
old()

# %%
warnings.filterwarnings("ignore")
warnings.warn("careful again")

# %%
from IPython.display import display, clear_output
display({"b": 1, "a": [1, 2]})
h = display("first", display_id="status")
h.update("second")

# %%
import pandas as pd
df = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
display(df)
df2 = df
df["c"] = df.a * 2
df2

# %%
df;

# %%
# raises: KeyError
df["nope"]

# %%
# raises: AssertionError
assert s == 4, f"s is {s}"

# %%
import sys
print("to stderr", file=sys.stderr)
sys.stdout.write("no newline")

# %%
0.1 + 0.2, 1e20, -0.0, float("nan"), 10**30, True + True, "é", b"\x00", None

# %%
lambda: 0

# %%
# raises: SystemExit
sys.exit("bye")

# %%
print("still here", x, s)

# %%
# raises: KeyboardInterrupt
raise KeyboardInterrupt

