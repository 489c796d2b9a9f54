# %% [markdown]
# # Housekeeping, as notebooks from Colab begin

# %%
try:
    import google.colab
    IN_COLAB = True
except ImportError:
    IN_COLAB = False
print("colab:", IN_COLAB)

# %%
# %matplotlib inline
# %config InlineBackend.figure_format = 'retina'
import os, sys, glob
import numpy as np
import matplotlib.pyplot as plt

# %%
# !mkdir -p data/raw && echo "a,b" > data/raw/one.csv && echo "1,2" >> data/raw/one.csv
# !ls -1 data/raw
files = !ls data/raw
files, glob.glob("data/**/*.csv", recursive=True)

# %%
# %cd -q data
# !pwd | xargs basename
# %cd -q ..
os.path.basename(os.getcwd()) == "data"

# %%
# %env EPOCHS=3
epochs = int(os.environ["EPOCHS"])
# !echo "epochs in the shell: $EPOCHS, in Python: {epochs + 1}"

# %%
# %%bash
set -e
for i in 1 2 3; do echo "line $i"; done | tail -n 2
echo "to stderr" >&2

# %%
# %%bash --out listing --err problems
ls data/raw
echo oops >&2

# %%
listing, problems

# %%
# %%writefile helper.py
"""Written by a cell."""
SCALE = 10
def scale(x):
    return SCALE * x

# %%
import helper
helper.SCALE = 100
helper.scale(2), helper.__doc__

# %%
# %%writefile -a helper.py
def twice(x):
    return 2 * scale(x)

# %%
import importlib
importlib.reload(helper)
helper.twice(2), helper.SCALE

# %%
# %%writefile setup_run.py
from_the_script = [__name__, 6 * 7]
print("script runs")

# %%
# %run setup_run.py
from_the_script

# %%
# compare: no, it shows times
# %%time
total = 0
for i in range(1000):
    total += i
total

# %%
# compare: no, it shows times
best = %timeit -o -q -n 2 -r 2 sum(range(10))
# %time squares = [i * i for i in range(5)]

# %%
total, squares, type(best).__name__, len(best.all_runs)

# %%
del best

# %%
# %%capture captured
print("out")
print("err", file=sys.stderr)
plt.plot([1, 2]); plt.show()
"value"

# %%
captured.stdout, captured.stderr, len(captured.outputs)

# %%
del captured

# %%
# %%python3
import sys
print("another Python", len(sys.argv))

# %%
plt.plot(np.arange(3))
plt.title("at the end, without show")

# %%
# raises: CalledProcessError
# %%bash
echo before
exit 3

# %%
# !cat data/raw/nothing.csv 2> /dev/null || echo "exit $?"
_exit_code

# %%
# %alias_magic t time
# %pinfo2 helper.scale
"still here"

# %%
# compare: no, it lists modules as it likes
# %who_ls int

# %%
# %%html
<b>bold</b>
