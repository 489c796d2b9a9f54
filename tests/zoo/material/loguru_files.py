# %% [markdown]
# needs: loguru

# %%
import pathlib, tempfile
from loguru import logger
folder = pathlib.Path(tempfile.mkdtemp())
logger.remove()
number = logger.add(folder / "run.log", format="{level} {message} {extra}", mode="w")
logger.info("one")
print((folder / "run.log").read_text())

# %%
with logger.contextualize(step=2):
    logger.warning("two")
print((folder / "run.log").read_text())

# %%
kept = []
class Keeper:
    def write(self, message):
        kept.append(str(message))
keeper = Keeper()
logger.add(keeper, format=lambda record: "{message}|", filter=lambda record: record["level"].no > 20)
logger.info("three"); logger.error("four")
print(kept, (folder / "run.log").read_text())

# %%
try:
    with logger.catch(reraise=True):
        {}["x"]
except KeyError:
    print(len(kept), kept[-1][:37])
quiet = logger.opt(lazy=True).patch(lambda record: record["extra"].update(by="patch"))
quiet.error("{}", lambda: 5)
print(kept[-1], (folder / "run.log").read_text().splitlines()[-1])

# %%
logger.remove(number)
logger.disable("__main__"); logger.error("six"); logger.enable("__main__"); logger.error("seven")
print(len(kept), kept[-1], (folder / "run.log").read_text().count("seven"))
