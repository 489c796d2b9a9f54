# %% [markdown]
# needs: intervaltree, treelib, anytree, portion

# %%
from intervaltree import IntervalTree, Interval
import treelib, anytree, portion as P
t = IntervalTree([Interval(1, 3, 'a')]); iv = next(iter(t))
tr = treelib.Tree(); tr.create_node('r', 'r'); tr.create_node('c', 'c', parent='r', data={'k': 1})
root = anytree.Node('root'); kid = anytree.Node('kid', parent=root, v=1)
i = P.closed(1, 2) | P.open(5, 6); D = P.IntervalDict({P.closed(0, 1): 'z'})

# %%
t[2:5] = 'b'; tr.create_node('d', 'd', parent='c'); anytree.Node('k2', parent=kid); D[P.closed(3, 4)] = 'y'
sorted(t[2]), iv in t, tr['c'].data, [n.name for n in root.descendants], i, D

# %%
sorted(t), tr.depth(), [n.name for n in root.descendants], kid.root is root, i.contains(5.5) if hasattr(i, 'contains') else 5.5 in i, D[3]

# %%
kid.parent = None; tr.remove_node('c'); t.remove(iv); i is P.empty(), P.inf == P.inf

# %%
root.children, kid.is_root, len(tr), sorted(t), P.closed(0, P.inf).upper is P.inf, P.empty().empty
