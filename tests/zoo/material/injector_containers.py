# %% [markdown]
# needs: dependency_injector

# %%
from dependency_injector import containers, providers
class Service:
    def __init__(self, url, n=0): self.url, self.n = url, n
    def __repr__(self): return f'Service({self.url},{self.n})'
class Container(containers.DeclarativeContainer):
    config = providers.Configuration()
    service = providers.Singleton(Service, url=config.url)
    maker = providers.Factory(Service, url='f')

# %%
c = Container(); c.config.from_dict({'url': 'db'})
s = c.service(); s

# %%
c.service() is s, c.maker(n=2)

# %%
c.service().n = 5; s.n

# %%
s.n, c.config.url()

# %%
with c.maker.override(providers.Object(3)): print(c.maker())

# %%
c.maker()
