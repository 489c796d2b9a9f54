# %% [markdown]
# needs: sqlalchemy

# %%
import sqlalchemy as sa
meta = sa.MetaData()
users = sa.Table("users", meta, sa.Column("id", sa.Integer, primary_key=True), sa.Column("n", sa.String))
print(users.c.keys(), meta.tables["users"] is users)

# %%
users.append_column(sa.Column("age", sa.Integer))
q = sa.select(users.c.id).where(users.c.age > 30)
print(q, users.c.age.table is users)

# %%
class Upper(sa.types.TypeDecorator):
    impl = sa.String
    cache_ok = True
    def process_bind_param(self, value, dialect):
        return value.upper()
tags = sa.Table("tags", meta, sa.Column("t", Upper), sa.Column("u", sa.ForeignKey("users.id")))
print([t.name for t in meta.sorted_tables])

# %%
j = users.join(tags)
print(j.onclause, list(users.c)[2] is users.c.age)

# %%
q = q.order_by(users.c.n)
print(q.compile().params, str(q).splitlines()[-1], tags.c.t.type.__class__.__name__)
