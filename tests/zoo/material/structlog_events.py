# %% [markdown]
# needs: structlog

# %%
import structlog, sys
events = []
def keep(logger, name, event):
    events.append(dict(event))
    return event
structlog.configure(processors=[keep, structlog.processors.KeyValueRenderer(sort_keys=True)], logger_factory=structlog.PrintLoggerFactory())
log = structlog.get_logger(run=1)
log.info("begin", a=2)

# %%
bound = log.bind(user="x")
bound.warning("there")
print(len(events))

# %%
structlog.contextvars.bind_contextvars(req=5)
print(structlog.contextvars.get_contextvars(), events[-1])

# %%
bound.info("again")
print(structlog.is_configured(), structlog.contextvars.get_contextvars())

# %%
with structlog.testing.capture_logs() as caught:
    bound.error("inside")
print(caught, len(events))
