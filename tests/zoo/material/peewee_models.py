# %% [markdown]
# needs: peewee

# %%
import peewee as pw
db = pw.SqliteDatabase("shop.db")
class Base(pw.Model):
    class Meta:
        database = db
class Person(Base):
    name = pw.CharField()
    age = pw.IntegerField(default=1)
class Pet(Base):
    owner = pw.ForeignKeyField(Person, backref="pets")
    name = pw.CharField()
db.create_tables([Person, Pet])
ann = Person.create(name="Ann", age=30)
print(ann.id, Person.select().count())
db.close()

# %%
Pet.create(owner=ann, name="Rex")
Pet.create(owner=ann, name="Tom")
print([p.name for p in ann.pets.order_by(Pet.name)], Pet.get(Pet.name == "Rex").owner == ann)
db.close()

# %%
q = Person.select(Person.name, pw.fn.COUNT(Pet.id).alias("n")).join(Pet).group_by(Person.name)
print([(r.name, r.n) for r in q], q.sql()[0][:20])
db.close()

# %%
ann.age += 1
print(ann.dirty_fields, ann.is_dirty(), ann.save(), Person.get_by_id(1).age)
db.close()

# %%
class Cat(Base):
    color = pw.CharField(null=True)
    class Meta:
        table_name = "cats"
db.create_tables([Cat])
print(Cat._meta.table_name, Cat.select().exists())
db.close()

# %%
with db.atomic() as txn:
    Cat.create(color="red")
    txn.rollback()
print(Cat.select().count(), Person.name == "x", type(Person.age).__name__)
db.close()

# %%
print(Pet.owner.rel_model is Person, Person.pets.rel_model is Pet if hasattr(Person.pets, "rel_model") else None)

# %%
print(Person.update(age=5).where(Person.name == "Ann").execute(), Person.get(Person.id == 1).age)
db.close()

# %%
expr = (Person.age > 3) & (Person.name.startswith("A"))
print(Person.select().where(expr).sql())

# %%
print(Person.select().where(expr).count(), Person.select().where(~expr).count())
db.close()
