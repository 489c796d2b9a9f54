# %% [markdown]
# needs: typer

# %%
import typer
from typer.testing import CliRunner
from enum import Enum
app = typer.Typer()
log = []
class Mode(str, Enum):
    fast = "fast"
    slow = "slow"
print(list(Mode))

# %%
@app.command()
def run(n: int, mode: Mode = Mode.slow):
    log.append((n, mode))
    typer.echo(f"{n} {mode.value}")
@app.command()
def stop():
    raise typer.Exit(3)
print(CliRunner().invoke(app, ["run", "2", "--mode", "fast"]).output)

# %%
print(log, log[0][1] is Mode.fast, CliRunner().invoke(app, ["stop"]).exit_code)

# %%
CliRunner().invoke(app, ["run", "5"])
print(len(log), log[-1][1] is Mode.slow, [c.callback.__name__ for c in app.registered_commands])

# %%
# raises: BadParameter
raise typer.BadParameter("no")
