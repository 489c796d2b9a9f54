# %% [markdown]
# needs: Bio, anndata

# %%
from Bio.Seq import Seq, MutableSeq
from Bio.SeqRecord import SeqRecord
from Bio import Align, Phylo
from io import StringIO
import anndata, numpy as np
s = Seq('ATGC'); r = SeqRecord(s, id='r', letter_annotations={'q': [1, 2, 3, 4]}); m = MutableSeq('AT')
al = Align.PairwiseAligner(); al.mode = 'local'
tree = Phylo.read(StringIO('((A,B),C);'), 'newick')
ad = anndata.AnnData(np.arange(6.0).reshape(3, 2)); v = ad[1:]

# %%
m.append('G'); r.seq is s, str(m), al.score('ATGC', 'ATG'), tree.count_terminals()

# %%
str(m), r[1:3].letter_annotations, al.mode, [c.name for c in tree.get_terminals()], v.is_view, v.shape

# %%
ad.X[1, 0] = 99; ad.obs['k'] = list('abc'); v.X[0].tolist(), v.is_view

# %%
v.X[0].tolist(), v.is_view, ad.obs.k.tolist(), ad.obs_names.tolist()

# %%
v.obs['new'] = 1; v.is_view

# %%
v.is_view, list(v.obs), tree.root.clades[0].clades[0].name

# %%
al.match_score = 2; a = al.align('ATGC', 'ATG')[0]; a.score

# %%
a.score, str(a).split()[1], al.match_score
