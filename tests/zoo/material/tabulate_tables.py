# %% [markdown]
# needs: tabulate

# %%
import tabulate as tb
from tabulate import tabulate
rows = [["a", 1.5], ["b", 22]]
print(tabulate(rows, headers=["k", "v"]))

# %%
tb.PRESERVE_WHITESPACE = True
rows.append(["  c", 3])
print(tabulate(rows, tablefmt="plain"))

# %%
fmt = tb.TableFormat(None, None, None, None, tb.DataRow("<", "|", ">"), tb.DataRow("<", "|", ">"), 0, None)
print(tabulate(rows, tablefmt=fmt))

# %%
print(tabulate(rows, tablefmt=fmt), tb.PRESERVE_WHITESPACE)

# %%
tb.PRESERVE_WHITESPACE = False
print(tabulate(rows, tablefmt="plain"))

# %%
# raises: TypeError
print(tabulate(rows, tablefmt="github"), tabulate(5))
