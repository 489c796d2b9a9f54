# %% [markdown]
# # Magics, printers and handlers of one's own, in whatever cell

# %%
import builtins, signal, sys, types, warnings
import numpy as np
from IPython.core.magic import Magics, line_magic, magics_class, register_cell_magic, register_line_magic
@register_line_magic
def hello(line): return f"hello {line}"
@register_cell_magic
def backwards(line, cell): print(line, cell[::-1].strip())

# %%
# %hello there

# %%
%%backwards or so
abc

# %%
@magics_class
class Counting(Magics):
    count = 0
    @line_magic
    def bump(self, line):
        Counting.count += 1
        return Counting.count, line in self.shell.user_ns
get_ipython().register_magics(Counting)
# %bump signal

# %%
# %bump Counting

# %%
class Money:
    def __init__(self, amount): self.amount = amount
formatters = get_ipython().display_formatter.formatters
formatters["text/plain"].for_type(Money, lambda money, printer, cycle: printer.text(f"${money.amount:.2f}"))
formatters["text/html"].for_type(Money, lambda money: f"<b>${money.amount}</b>")
Money(3)

# %%
# state: no formatters, they are of each shell
[Money(4.5)], Money(1)

# %%
Money(2)

# %%
# %precision 3
# %pprint
3.14159265, np.array([1 / 3]), list(range(60))

# %%
2.718281828, np.array([2 / 3]), list(range(60))

# %%
class Late(Exception): pass
def handler(number, frame): raise Late(signal.Signals(number).name)
signal.signal(signal.SIGUSR1, handler)
try:
    signal.raise_signal(signal.SIGUSR1)
except Late as late:
    print("late", late)

# %%
# raises: Late
signal.raise_signal(signal.SIGUSR1)

# %%
told = []
def show(message, *args, **options): told.append(str(message))
shown_before, warnings.showwarning = warnings.showwarning, show
warnings.simplefilter("always")
builtins.shout = lambda text: text.upper()

# %%
warnings.warn("a word")
told, shout("loud")

# %%
warnings.showwarning = shown_before
del builtins.shout
made = types.ModuleType("made_here", "By a cell.")
exec("calls = 0\ndef call():\n    global calls\n    calls += 1\n    return calls", vars(made))
sys.modules["made_here"] = made
made.call(), hasattr(builtins, "shout")

# %%
import made_here
made_here.call(), made_here is made, made_here.__doc__, warnings.showwarning is show

# %%
# state: no say, it is a method of each side's own stream
say = sys.stdout.write
say("once\n")

# %%
say("twice\n")

# %%
say("and again\n"), say == sys.stdout.write
