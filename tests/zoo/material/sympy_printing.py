# %% [markdown]
# needs: sympy

# %%
import sympy as sp
sp.init_printing(use_unicode=False, pretty_print=False)
n = sp.Dummy("n")
i = sp.Idx("i", 3)
A = sp.IndexedBase("A")
print(A[i], n == sp.Dummy("n"))

# %%
s = sp.Sum(A[i], (i, 0, 2))
w = sp.Wild("w")
print(s.doit(), (n ** 2).match(w ** 2)[w] is n)

# %%
a = sp.Q.positive(n)
with sp.assuming(a):
    print(sp.ask(sp.Q.positive(n)))
p = sp.Poly(n ** 2 + 1, n)
print(p.degree(), p.gens[0] is n)

# %%
G = sp.combinatorics.PermutationGroup([sp.combinatorics.Permutation([1, 0, 2])]) if hasattr(sp, "combinatorics") else None
print(p.eval(3), sp.latex(s), G.order())

# %%
print(sp.srepr(p.as_expr()) == sp.srepr(n ** 2 + 1), sp.pretty(sp.sqrt(2), use_unicode=False))
