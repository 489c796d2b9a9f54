# %% [markdown]
# needs: loguru

# %%
import sys
from loguru import logger
lines = []
logger.remove()
sink = logger.add(lines.append, format="{level} {extra} {message}")
logger.info("one")
print([str(l).strip() for l in lines])

# %%
log = logger.bind(user="x")
log.warning("two")
print(len(lines))

# %%
logger.level("ZOO", no=33)
logger.log("ZOO", "three")
print([str(l).strip() for l in lines][-1])

# %%
logger.log("ZOO", "four")
print(len(lines), lines[-1].record["level"].no)

# %%
logger.remove(sink)
logger.info("five")
print(len(lines))
