# %% [markdown]
# needs: msgspec

# %%
import msgspec
from typing import Generic, TypeVar, Optional
T = TypeVar("T")
class Node(msgspec.Struct, rename="camel", omit_defaults=True):
    own_name: str
    children: list["Node"] = []
    parent_node: Optional["Node"] = None
    def walk(self):
        yield self.own_name
        for child in self.children:
            yield from child.walk()
class Box(msgspec.Struct, Generic[T], frozen=True, order=True):
    held: T
    size: int = msgspec.field(default=1, name="N")
    def __post_init__(self):
        if self.size < 0:
            raise ValueError("negative")
top = Node("top")
kept = [top]
box = Box(3)
print(msgspec.json.encode(top), box)

# %%
child = Node("child", parent_node=top)
top.children.append(child)
print(list(top.walk()), child.parent_node is top, kept[0] is top)

# %%
top.own_name = "root"
print(kept[0].own_name, child.parent_node.own_name, kept[0].children[0] is child)

# %%
decoder = msgspec.msgpack.Decoder(Box[int])
encoder = msgspec.msgpack.Encoder(enc_hook=lambda value: str(value))
print(decoder.decode(encoder.encode(box)), hash(Box(3)) == hash(box), Box(2) < box)

# %%
class Leaf(Node, tag="leaf"):
    color: str = "red"
leaf = Leaf("l", color="blue")
top.children.append(leaf)
print(msgspec.json.encode(leaf), msgspec.structs.fields(Leaf)[0].encode_name, [type(n).__name__ for n in top.children])

# %%
print(msgspec.convert({"ownName": "x", "type": "leaf"}, Leaf), isinstance(leaf, Node), type(top.children[1]) is Leaf)

# %%
# raises: ValueError
Box(1, size=-1)

# %%
class Late(msgspec.Struct, kw_only=True):
    later: "NotYet | None" = None
    names: set[str] = msgspec.field(default_factory=lambda: {"x"}, name="n")
late = Late()
print(late)

# %%
class NotYet(msgspec.Struct, tag=3):
    late: Late
late.later = NotYet(late)
print(late.later.late is late, msgspec.json.decode(b'{"n":["y"]}', type=Late).names)

# %%
late.names.add("z")
print(sorted(late.later.late.names), sorted(Late().names), Late.__annotations__["names"])
