# %% [markdown]
# needs: prometheus_client

# %%
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
reg = CollectorRegistry()
c = Counter("hits", "Hits", ["who"], registry=reg)
child = c.labels("ann")
child.inc()
print(reg.get_sample_value("hits_total", {"who": "ann"}))

# %%
child.inc(4)
g = Gauge("temp", "T", registry=reg)
g.set(3.5)
print(c.labels("ann") is child, reg.get_sample_value("hits_total", {"who": "ann"}))

# %%
h = Histogram("lat", "L", registry=reg, buckets=(1, 5))
h.observe(0.5)
print(len(list(reg.collect())), reg.get_sample_value("temp"))

# %%
g.set_function(lambda: 42)
h.observe(3)
print(reg.get_sample_value("temp"), reg.get_sample_value("lat_count"))

# %%
print(reg.get_sample_value("temp"), b'hits_total{who="ann"} 5.0' in generate_latest(reg))

# %%
# raises: DuplicateTimeseries
Counter("hits", "again", registry=reg)
