"""Notebooks with cells that change them: one scenario for each kind of what can change."""

from .landing_trial import Scenario

#: How the modules begin that a scenario makes.
RELOADED = "transaction_reloaded_"
CONTAINERS = Scenario(
    """
from collections import OrderedDict, defaultdict, deque
class Own(list):
    pass
class Slots:
    __slots__ = ("a", "b")
class Plain:
    pass
class Other:
    pass
class Guarded:
    def __setattr__(self, name, value): raise AttributeError(name)
class State:
    def __init__(self): self.raw = [1]
    def __getstate__(self): return {"raw": self.raw}
    def __setstate__(self, state): self.raw = state["raw"]
items, table, ordered = [1, [2], 3], {"b": 1, "a": [2]}, OrderedDict([("z", 1), ("y", 2)])
default, ring, group, raw = defaultdict(list, {"k": [1]}), deque([1, 2], maxlen=3), {1, 2}, bytearray(b"abc")
own, slots, plain, turns, guarded, with_state = Own([1]), Slots(), Plain(), Plain(), Guarded(), State()
own.note, slots.a, plain.b, plain.a, turns.x = "n", [1], 1, [2], 1
alias, inner, knot = items, table["a"], []
knot.append(knot)
iterator = iter(items)
pair = (items, [1])
bystander, holder, put = [ring], Plain(), (lambda ring: lambda: ring)(ring)
holder.ring = ring
empty_list, empty_table = [], {}
gone, late = [1], 1
""",
    """
items[1].append(4)
items.insert(0, {"new": inner})
table.pop("b"); table["c"] = items; table["b"] = 2; inner.append(table)
ordered.move_to_end("z"); ordered["x"] = knot
default["m"].append(1); default.default_factory = dict
ring = deque(ring, maxlen=9); ring.append(3)
group.add("x"); group.discard(1); raw += b"def"; raw[0] = 0
own.append(own); own.note = items; own.more = 1
slots.b = slots; del slots.a
del plain.b; plain.c = plain; plain.a.append(1)
turns.__class__ = Other; turns.y = 2
object.__setattr__(guarded, "__class__", Other); guarded.x = 1
with_state.raw = [items]
knot.append(1)
next(iterator)
pair[1].append(pair)
empty_list.append(1); empty_table["x"] = 1
del gone
late, fresh = [items], {"a": plain}
""",
)
DEFINITIONS = Scenario(
    """
import ast
import functools
def plain(a, b=[1], *, c={"k": 1}) -> int:
    "Says."
    return a
plain.note = [1]
def make():
    count, empty = [0], 1
    def step():
        count.append(empty)
        return count
    def other(): return count
    def forget():
        nonlocal empty
        empty = 2
    return step, other, forget
step, other, forget = make()
@functools.lru_cache
def cached(n): return n
cached.note = 1
class Base:
    limit, items = 1, [1]
    def method(self): return 1
    @property
    def size(self): return 1
    @staticmethod
    def fixed(): return 1
class Child(Base):
    __slots__ = ("x",)
    total = 0
class Bare:
    __slots__ = ("x",)
one, bare, part, bound = Child(), Bare(), functools.partial(plain, 1, b=[2]), Base.method
one.x = [1]
method = one.method
old = plain
""",
    """
def swapped(a, b=2): return a + b
plain.__code__ = (lambda a, b=2, *, c=3: [a, b, c]).__code__
plain.__defaults__ = ([2], bare); plain.__kwdefaults__ = {"c": 2}; plain.__annotations__ = {"a": str, "b": Base}
plain.__name__, plain.__doc__ = "other", None
plain.more = swapped; plain.note.append(2)
step(); forget()
cached.note = 2; cached.more = 3
Base.limit = [2]; Base.items.append(bare); bare.x = Base; Base.extra = 1; del Base.size
Base.method = swapped; Base.fixed = staticmethod(plain)
Child.total += 1; one.x.append(Base); one.y = 1
class New(Child): pass
fresh = New()
part.keywords["b"].append(1)
def late(): return late
old = 1
""",
    hidden=("cached",),
    probe="((cached.__dict__.get('note'), cached.__dict__.get('more'), cached(3)), [cached, cached.__wrapped__])",
)
ERRORS = Scenario(
    """
import os
class Mine(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b
kept, mine, plain = ValueError("x", [1]), Mine(1, [2]), KeyError("k")
mine.__cause__ = plain
shared = kept.args[1]
""",
    """
import random
kept.args = ("y", shared); shared.append(2); kept.__cause__ = mine; kept.note = 1
mine.__cause__ = None; mine.b.append(kept)
plain.add_note("note")
random.random()
os.environ["BULLETIN_NOT_THIS"] = "1"; os.environ["TRANSACTION"] = "1"
first = 1
raise mine
""",
)
ARRAYS = Scenario(
    """
import numpy as np
flat, grid, order = np.arange(6.0), np.arange(12).reshape(3, 4), np.asfortranarray(np.ones((2, 3)))
view, turned, whole = flat[1:4], grid.T, grid[:]
objects, rows = np.array([1, [2], None], dtype=object), np.zeros(2, dtype=[("a", "i4"), ("b", "f8")])
shaped, grows, typed, locked, empty = np.arange(6), np.arange(3), np.arange(4), np.arange(3), np.zeros((0, 2))
locked.flags.writeable = False
raw = bytearray(8)
window = np.frombuffer(raw, dtype="i4")
text, scalar, zero = np.array(["a", "bc"]), np.float64(2), np.array(5)
inner = objects[1]
holder = [grows]
record = np.rec.array([(1, 2.0)], dtype=[("x", "i4"), ("y", "f8")])
""",
    """
flat[2] = 9; grid[0, 0] = -1; order[1, 1] = 7; turned[3, 2] = 5; rows["b"][1] = 2.5
objects[1].append(objects); objects[0] = "z"; objects[2] = flat
shaped.shape = (2, 3); shaped[0, 0] = 4
grows = np.arange(9); typed.dtype = "u8"; locked.flags.writeable = True; locked[0] = 8; locked.flags.writeable = False
window[1] = 3; view[0] = -5; zero[...] = 6; text[0] = "q"; record.x[0] = 7
flat.flags.writeable = False
fresh, large = flat[::2], np.arange(9000.0)
pair = (fresh, large[10:20])
np.random.rand()
del whole
""",
    needs="numpy",
)
FRAMES = Scenario(
    """
import numpy as np, pandas as pd
frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [0.5, 1.5, 2.5]})
series, other, index = pd.Series([1.0, 2.0], name="s"), frame[["a"]], frame.index
frame.attrs["note"] = [1]
kept, holder = frame, {"frame": frame, "series": series}
def known():
    held = [frame, series, frame.attrs, index, frame.index, frame.columns]
    return (list(index), list(frame.index), str(frame.index.dtype)), held
""",
    """
frame.loc[1, "a"] = 9; frame["d"] = frame["c"] * 2; frame.attrs["note"].append(2)
frame.drop(index=[0], inplace=True); frame.rename(columns={"b": "B"}, inplace=True)
series[0] = 7.0; series.name = "t"; series.index = ["p", "q"]
other = other + 1
fresh = frame.groupby("B").sum()
""",
    hidden=("index",),
    probe="known()",
    needs="pandas",
)
TORCH = Scenario(
    """
import torch
torch.manual_seed(1)
def see(t):
    numbers = t.detach().double().numpy().round(4).tolist()  # the last bit depends on where memory lies
    return (tuple(t.shape), t.stride(), str(t.dtype), t.requires_grad, numbers, dict(vars(t)),
        None if t.grad is None else see(t.grad))
def all_of(*tensors):
    return [part for t in tensors for part in (t, t.grad, t.data_ptr())]
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
best = torch.optim.Adam(model.parameters(), lr=0.1)
def train():
    best.zero_grad()
    model(torch.ones(4, 2) * torch.rand(4, 2)).pow(2).sum().backward()
    best.step()
train()
plain, part = torch.arange(6.0), None
part = plain[2:4]
leaf, resized = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
leaf.note = [1]
resized.grad = torch.ones(3)
shape = torch.arange(4)
cleared = torch.ones(2, requires_grad=True)
cleared.grad = torch.ones(2)
def known():
    tensors = [*model.parameters(), *model.buffers(), plain, part, leaf, resized, shape, cleared]
    moments = [held["exp_avg"] for held in best.state.values()]
    rest = (model.training, [sorted(map(str, group)) for group in best.param_groups], best.param_groups[0]["lr"])
    return ([see(t) for t in tensors + moments], rest, torch.get_rng_state().numpy().tobytes()), [
        *all_of(*tensors, *moments), model, best, *model, best.param_groups, *best.param_groups]
""",
    """
train()
model.eval(); model[0].extra = 1; best.param_groups[0]["lr"] = 0.5
plain[3] = 9; part.mul_(2)
leaf.requires_grad_(False); leaf.note.append(2); leaf.more = 1
resized.data = torch.zeros(5); resized.grad = torch.zeros(5)
shape.unsqueeze_(0)
cleared.grad = None
fresh = plain[1:]
del train
""",
    hidden=("model", "best", "plain", "part", "leaf", "resized", "shape", "cleared", "fresh"),
    probe="known()",
    needs="torch",
)
HANDLES = Scenario(
    """
import io
from threading import Lock
def held():
    lock = Lock()
    lock.acquire()
    return lock
locked = held()
box, text, raw = {"lock": locked, "n": [1]}, io.StringIO("abc"), io.BytesIO(b"xyz")
text.read(1)
""",
    """
box["n"].append(2); box["again"] = box["lock"]
text.seek(2); raw.write(b"q")
made = (i for i in "ab")
box["made"] = [made]
""",
    hidden=("locked", "box", "text", "raw", "made"),
    probe="((list(box), box['n'], text.tell(), text.getvalue(), raw.getvalue()), [box, *box.values(), text, raw])",
)
MODULES = Scenario(
    """
import importlib, os, pathlib, sys
from bulletin.state import modules
def write(text):
    pathlib.Path(name + ".py").write_text(text)
    importlib.invalidate_caches()
name = "transaction_reloaded_" + os.urandom(4).hex()
write("LIMIT = 1\\nitems = [1]\\ndef f(): return 1\\n")
reloaded = importlib.import_module(name)
modules.observe()
write("LIMIT = 2\\nitems = [2]\\ndef f(): return 2\\nEXTRA = 1\\n")
kept = []
def known():
    held = sys.modules[name]
    found = [part for part in vars(held) if part != "__builtins__"]
    data = found, held.LIMIT, list(held.items), held.f(), vars(held).get("EXTRA")
    return data, [reloaded, held, held.f, held.items]
""",
    """
import importlib
kept.append(reloaded.LIMIT)
importlib.reload(reloaded)
reloaded.items.append(reloaded.LIMIT)
kept.append(reloaded.f())
""",
    hidden=("name", "reloaded"),
    probe="known()",
)
SCENARIOS = {
    "modules": MODULES,
    "containers": CONTAINERS,
    "definitions": DEFINITIONS,
    "errors": ERRORS,
    "arrays": ARRAYS,
    "frames": FRAMES,
    "torch": TORCH,
    "handles": HANDLES,
}
