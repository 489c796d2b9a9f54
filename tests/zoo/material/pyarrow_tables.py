# %% [markdown]
# needs: pyarrow

# %%
import pyarrow as pa, pyarrow.compute as pc
schema = pa.schema([("n", pa.int32()), ("s", pa.string())], metadata={"by": "me"})
table = pa.table({"n": [1, 2, 3], "s": ["x", None, "z"]}, schema=schema)
print(table.schema.metadata, pc.sum(table["n"]))

# %%
table = table.append_column("m", pc.multiply(table["n"], 10))
column = table["m"]
print(table.column_names, column.null_count, table.schema is schema)

# %%
class Point(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.list_(pa.float64(), 2), "zoo.point")
    def __arrow_ext_serialize__(self):
        return b""
    @classmethod
    def __arrow_ext_deserialize__(cls, storage, data):
        return cls()
points = pa.ExtensionArray.from_storage(Point(), pa.array([[1.0, 2], [3, 4]], pa.list_(pa.float64(), 2)))
print(points.type)

# %%
buffer = pa.BufferOutputStream()
print(points.storage.to_pylist(), pa.scalar(5).as_py(), column.to_pylist(), isinstance(points.type, Point))

# %%
# raises: KeyError
sliced = table.slice(1)
batch = sliced.to_batches()[0]
print(batch.num_rows, batch.column(0).offset, table["zzz"])
