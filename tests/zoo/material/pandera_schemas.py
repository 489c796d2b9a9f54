# %% [markdown]
# needs: pandera

# %%
import pandera.pandas as pa, pandas as pd
from pandera.typing import Series
schema = pa.DataFrameSchema({'a': pa.Column(int, pa.Check.gt(0)), 'b': pa.Column(str, nullable=True)}, coerce=True)
class Model(pa.DataFrameModel):
    a: Series[int] = pa.Field(ge=0)
    @pa.check('a')
    def small(cls, s): return s < 100
df = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})

# %%
schema.validate(df).dtypes.astype(str).to_dict(), Model.validate(df[['a']]).a.tolist()

# %%
try: Model.validate(pd.DataFrame({'a': [200]}))
except pa.errors.SchemaError as e: print(type(e).__name__, e.failure_cases.failure_case.tolist())

# %%
err = None
try: schema.validate(pd.DataFrame({'a': [-1], 'b': ['q']}))
except pa.errors.SchemaError as e: err = e
err.failure_cases.failure_case.tolist(), err.schema is schema

# %%
err.failure_cases.failure_case.tolist(), err.schema is schema, err.check == schema.columns['a'].checks[0]

# %%
s2 = schema.add_columns({'c': pa.Column(float, required=False)}); list(s2.columns)

# %%
list(s2.columns), list(schema.columns), s2 == schema

# %%
@pa.check_types
def f(d: pa.typing.DataFrame[Model]) -> int: return int(d.a.sum())
f(df[['a']])

# %%
f(df[['a']])

# %%
pa.extensions.register_check_method(statistics=['v'])(lambda obj, *, v: obj == v) if False else None
import pandera.extensions as ext
@ext.register_check_method(statistics=['val'])
def is_val(pandas_obj, *, val): return pandas_obj == val
pa.Check.is_val(val=1)

# %%
pa.DataFrameSchema({'a': pa.Column(int, pa.Check.is_val(val=1))}).validate(pd.DataFrame({'a': [1]})).a.tolist()
