# %% [markdown]
# needs: rich

# %%
from rich.console import Console
from rich.table import Table
from rich.tree import Tree
console = Console(width=40, record=True, color_system=None)
table = Table(title="Runs")
table.add_column("name")
table.add_column("acc", justify="right")
table.add_row("a", "0.5")
console.print(table)

# %%
table.add_row("b", "0.75")
console.print(table)
print(table.row_count)

# %%
tree = Tree("root")
branch = tree.add("left")
branch.add("leaf")
console.print(tree)

# %%
branch.add("another")
branch.label = "LEFT"
console.print(tree)
print(tree.children[0] is branch)

# %%
from rich.text import Text
t = Text("hello")
t.stylize("bold", 0, 2)
console.print(t, "[red]x[/red]")
print(t.spans)

# %%
print(len(console.export_text(clear=False).splitlines()), table.columns[1].justify)
