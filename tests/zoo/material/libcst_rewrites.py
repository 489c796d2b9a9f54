# %% [markdown]
# needs: libcst

# %%
import libcst as cst
import libcst.matchers as m
mod = cst.parse_module("def f(x):\n    return x + 1\n\nprint(f(2))\n")
print(type(mod.body[0]).__name__, mod.code.count("\n"))

# %%
class Rename(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.seen = []
    def leave_Name(self, old, new):
        self.seen.append(old.value)
        return new.with_changes(value="g") if old.value == "f" else new
r = Rename()
mod2 = mod.visit(r)
print(mod2.code, r.seen)

# %%
mod3 = mod2.visit(r)
print(len(r.seen), mod3.deep_equals(mod2))

# %%
print(m.matches(mod.body[0], m.FunctionDef(name=m.Name("f"))), len(m.findall(mod, m.Call())))

# %%
fn = mod.body[0]
print(fn is mod.body[0], isinstance(fn.params.params[0].default, cst.Parameters), fn.params.params[0].default is cst.MaybeSentinel.DEFAULT, fn.params.star_arg is cst.MaybeSentinel.DEFAULT)

# %%
from libcst.metadata import MetadataWrapper, ScopeProvider, PositionProvider
wrap = MetadataWrapper(mod)
pos = wrap.resolve(PositionProvider)
print(sorted((p.start.line, p.start.column) for n, p in pos.items() if isinstance(n, cst.Name)))

# %%
scopes = wrap.resolve(ScopeProvider)
names = {type(s).__name__ for s in scopes.values() if s is not None}
print(sorted(names))

# %%
node = wrap.module.body[0]
print(pos[node].start.line, node in pos)

# %%
tpl = cst.parse_expression("a if b else c")
print(cst.Module([]).code_for_node(tpl.with_changes(test=cst.Name("z"))))

# %%
try:
    cst.parse_module("def (")
except cst.ParserSyntaxError as e:
    print(type(e).__name__, e.raw_line)
