# %% [markdown]
# needs: click

# %%
import click
from click.testing import CliRunner
@click.group()
@click.option("--loud", is_flag=True)
@click.pass_context
def cli(ctx, loud):
    ctx.obj = {"loud": loud}
runner = CliRunner()
print(sorted(cli.commands))

# %%
@cli.command()
@click.argument("n", type=click.IntRange(0, 5))
@click.pass_obj
def count(obj, n):
    click.echo("N" * n if obj["loud"] else "n" * n)
print(runner.invoke(cli, ["--loud", "count", "3"]).output)

# %%
r = runner.invoke(cli, ["count", "9"])
print(r.exit_code, "9 is not in the range" in r.output)

# %%
class Even(click.ParamType):
    name = "even"
    def convert(self, value, param, ctx):
        if int(value) % 2:
            self.fail(f"{value} is odd", param, ctx)
        return int(value)
count.params[0].type = Even()
print(runner.invoke(cli, ["count", "3"]).exit_code, cli.commands["count"] is count)

# %%
print(runner.invoke(cli, ["count", "8"]).output, count.params[0].type.name, r.exit_code)

# %%
# raises: BadParameter
click.echo("direct")
cli.main(["count", "3"], standalone_mode=False)
