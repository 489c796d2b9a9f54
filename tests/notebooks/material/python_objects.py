# %% [markdown]
# # Objects: a small bank

# %%
class Account:
    """Money of somebody."""
    bank = "Bit Bank"
    count = 0

    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.log = []
        Account.count += 1

    def __repr__(self):
        return f"{type(self).__name__}({self.owner!r}, {self.balance})"

# %%
ann = Account("ann", 100)
bob = Account("bob")
ann, bob, Account.count

# %%
# methods come later
def deposit(self, amount):
    if amount <= 0:
        raise ValueError("amount must be positive")
    self.balance += amount
    self.log.append(("in", amount))

Account.deposit = deposit
bob.deposit(50)
bob.log

# %%
# raises: ValueError
ann.deposit(-5)

# %%
class Savings(Account):
    rate = 0.1
    def __init__(self, owner, balance=0, **kwargs):
        super().__init__(owner, balance)
        self.options = kwargs

    @property
    def interest(self):
        return self.balance * self.rate

    @interest.setter
    def interest(self, value):
        type(self).rate = value / self.balance

    @classmethod
    def copy_of(cls, account):
        return cls(account.owner, account.balance)

    @staticmethod
    def is_rate(value):
        return 0 <= value <= 1

# %%
cem = Savings("cem", 200, vip=True)
cem.interest = 40
print(cem.interest, Savings.rate, Savings.is_rate(2))
Savings.copy_of(ann)

# %%
accounts = {a.owner: a for a in (ann, bob, cem)}
friends = [ann, cem]
cem.friends = friends
ann.friends = friends
friends.append(bob)
accounts["ann"].friends is friends, len(cem.friends)

# %%
isinstance(cem, Account), Savings.__mro__[1] is Account, Account.count, type(ann) is Account

# %%
from dataclasses import dataclass, field, replace, asdict
@dataclass(order=True)
class Transfer:
    amount: float
    source: Account = field(compare=False)
    target: Account = field(compare=False)
    tags: list = field(default_factory=list, compare=False)

    def run(self):
        self.source.balance -= self.amount
        self.target.deposit(self.amount)
        return self

# %%
t1 = Transfer(10, ann, bob)
t2 = Transfer(5, bob, cem, ["gift"])
done = [t.run() for t in (t1, t2)]
sorted(done)[0] is t2, ann.balance, bob.balance, cem.balance

# %%
t3 = replace(t1, amount=1)
t3.tags is t1.tags, t3 == t1, t3.source is ann

# %%
from enum import Enum, auto, Flag
class Status(Enum):
    OPEN = auto()
    CLOSED = "closed"
    @property
    def is_open(self):
        return self is Status.OPEN

ann.status = Status.OPEN
Status("closed"), ann.status.is_open, list(Status)

# %%
class Right(Flag):
    READ = 1
    WRITE = 2
cem.rights = Right.READ | Right.WRITE
cem.rights, Right.READ in cem.rights

# %%
from abc import ABC, abstractmethod
class Shape(ABC):
    registry = []
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Shape.registry.append(cls.__name__)
    @abstractmethod
    def area(self): ...

class Square(Shape):
    __slots__ = ("side",)
    def __init__(self, side):
        self.side = side
    def area(self):
        return self.side ** 2

# %%
# raises: TypeError
Shape()

# %%
shapes = [Square(2), Square(3)]
Shape.registry, sum(s.area() for s in shapes)

# %%
class Vector:
    def __init__(self, *xs): self.xs = list(xs)
    def __add__(self, other): return Vector(*(a + b for a, b in zip(self.xs, other.xs)))
    def __iadd__(self, other):
        for i, b in enumerate(other.xs):
            self.xs[i] += b
        return self
    def __eq__(self, other): return isinstance(other, Vector) and self.xs == other.xs
    def __hash__(self): return hash(tuple(self.xs))
    def __getitem__(self, i): return self.xs[i]
    def __len__(self): return len(self.xs)
    def __repr__(self): return f"<{', '.join(map(str, self.xs))}>"
    def __call__(self, f): return Vector(*map(f, self.xs))
    def __bool__(self): return any(self.xs)

v = w = Vector(1, 2)
v += Vector(1, 1)
v, w, v is w, v(str), bool(Vector(0))

# %%
v = v + w
v, w, v is w, {v: "key"}[Vector(4, 6)]

# %%
class Meta(type):
    made = []
    def __new__(mcls, name, bases, ns):
        cls = super().__new__(mcls, name, bases, ns)
        Meta.made.append(name)
        return cls

class Model(metaclass=Meta):
    class Config:
        depth = 3
    def __getattr__(self, name):
        if name.startswith("get_"):
            return lambda: name[4:]
        raise AttributeError(name)

Model().get_color(), Meta.made, Model.Config.depth

# %%
class Node:
    def __init__(self, value, parent=None):
        self.value, self.parent, self.children = value, parent, []
        if parent:
            parent.children.append(self)
root = Node("root")
leaf = Node("leaf", Node("mid", root))
leaf.parent.parent is root

# %%
leaf.parent.children.append(root)        # a circle
leaf.parent.children[1].children[0] is leaf.parent, asdict(Transfer(1, None, None))

# %%
class Account:                            # the class again: old objects keep the old one
    pass
isinstance(ann, Account), type(ann).__name__, isinstance(cem, Account), Savings.__base__ is type(ann)

# %%
type(ann).__repr__ = lambda self: "patched"
ann, cem, friends
