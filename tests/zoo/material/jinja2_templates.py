# %% [markdown]
# needs: jinja2

# %%
from jinja2 import Environment, DictLoader, StrictUndefined, Template
sources = {"base": "<{% block b %}{% endblock %}>", "page": "{% extends 'base' %}{% block b %}{{ n|shout }}{% endblock %}"}
env = Environment(loader=DictLoader(sources), undefined=StrictUndefined)
env.filters["shout"] = lambda s: str(s).upper() + "!"
page = env.get_template("page")
print(page.render(n="hi"))

# %%
env.globals["site"] = "zoo"
t = env.from_string("{{ site }} {{ n|shout }}")
print(t.render(n="a"), page.environment is env)

# %%
sources["page"] = "{{ n|shout }} of {{ site }}"
print(env.get_template("page").render(n=3))

# %%
env.filters["shout"] = lambda s: str(s) + "?"
m = Template("{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(1) }}")
print(m.render(), env.from_string("{{ n|shout }}").render(n=1))

# %%
print(t.render(n="b"), m.module.f(5))

# %%
# raises: UndefinedError
t.render()
