# %% [markdown]
# needs: faker

# %%
from faker import Faker
from faker.providers import BaseProvider
fake = Faker("en_US")
Faker.seed(3)
names = [fake.first_name() for _ in range(3)]
print(names)

# %%
print(fake.city(), fake.random_int())

# %%
class Zoo(BaseProvider):
    def animal(self):
        return self.random_element(["cat", "dog", "emu"])
fake.add_provider(Zoo)
print(fake.animal(), fake.animal())

# %%
print(fake.animal(), fake.unique.random_digit())

# %%
fake.unique.clear()
fake.seed_instance(5)
print(fake.animal(), fake.name(), fake.locales)
