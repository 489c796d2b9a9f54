# %% [markdown]
# needs: sympy

# %%
import sympy as sp
x, y = sp.symbols("x y", positive=True)
f = sp.Function("f")
expr = (x + y) ** 2 / x
print(sp.expand(expr), sp.symbols("x", positive=True) is x)

# %%
roots = sp.solve(x ** 2 - 2, x)
print(roots, roots[0].has(x), expr.args[0].is_Pow)

# %%
class Step(sp.Function):
    @classmethod
    def eval(cls, v):
        if v.is_Number:
            return sp.Integer(1) if v > 0 else sp.Integer(0)
print(Step(3), Step(x), sp.diff(expr, y))

# %%
m = sp.Matrix([[x, 1], [0, y]])
m[0, 1] = Step(x)
print(m.det(), m.subs(x, 5), sp.S.Half is sp.Rational(1, 2))

# %%
eq = sp.dsolve(f(x).diff(x) - f(x), f(x))
fast = sp.lambdify((x, y), expr, "math")
print(eq, fast(1, 2), m[0, 1].func is Step)

# %%
print({x: 1, y: 2}[sp.Symbol("x", positive=True)], sp.integrate(sp.exp(-x), (x, 0, sp.oo)), m.T[1, 0])
