# ruff: noqa: E501  a row is a line
"""Kinds of pandas, polars and pyarrow."""

from .kind import Family, Kind as K

FRAME = "x.to_dict(), x.dtypes.astype(str).to_dict(), x.index.tolist(), x.columns.tolist()"
SERIES = "x.tolist(), str(x.dtype), x.index.tolist(), x.name"

# fmt: off
PANDAS = Family("pandas", (
    K("DataFrame of numbers", "import pandas as pd\nx = pd.DataFrame({'a': [1, 2], 'b': [.5, None], 'c': [True, False]})", "x.iloc[0, 0] = 9; x.loc[1, 'b'] = 7", look=FRAME),
    K("DataFrame, a column added", "import pandas as pd\nx = pd.DataFrame({'a': [1, 2]})", "x['b'] = x['a'] * 2", look=FRAME),
    K("DataFrame, a column removed", "import pandas as pd\nx = pd.DataFrame({'a': [1, 2], 'b': [3, 4]})", "del x['b']", look=FRAME),
    K("DataFrame, renamed in place", "import pandas as pd\nx = pd.DataFrame({'a': [1, 2]})", "x.columns = ['z']; x.index = ['p', 'q']", look=FRAME),
    K("DataFrame of strings", "import pandas as pd\nx = pd.DataFrame({'s': ['a', 'Größe', None]})", "x.loc[0, 's'] = 'zz'", look="x.s.fillna('-').tolist(), x.dtypes.astype(str).to_dict()"),
    K("DataFrame of objects", "import pandas as pd\nx = pd.DataFrame({'o': pd.Series([[1], {'k': 2}, None], dtype=object)})", "x.o[0].append(5)", look=FRAME, inner="x.o[0]"),
    K("DataFrame of dates, with time zone, of spans", "import pandas as pd\nx = pd.DataFrame({'d': pd.to_datetime(['2026-01-01', None]), 'z': pd.date_range('2026', periods=2, tz='UTC'), 't': pd.to_timedelta([1, 2], 'D')})", "x.loc[0, 'd'] = pd.Timestamp('2027-05-06'); x.loc[1, 't'] = pd.Timedelta('5h')", look="x.astype(str).to_dict(), x.dtypes.astype(str).to_dict()"),
    K("DataFrame of categories", "import pandas as pd\nx = pd.DataFrame({'c': pd.Categorical(['a', 'b', 'a'], ['b', 'a', 'z'], ordered=True)})", "x.loc[0, 'c'] = 'z'", look="x.c.tolist(), x.c.cat.categories.tolist(), x.c.cat.ordered"),
    K("DataFrame of nullable types", "import pandas as pd\nx = pd.DataFrame({'i': pd.array([1, None], 'Int64'), 'f': pd.array([.5, None], 'Float32'), 'b': pd.array([True, None], 'boolean')})", "x.loc[1, 'i'] = 5", look="x.astype(str).to_dict(), x.dtypes.astype(str).to_dict()"),
    K("DataFrame of periods, intervals, sparse", "import pandas as pd\nx = pd.DataFrame({'p': pd.period_range('2026-01', periods=2, freq='M'), 'i': pd.interval_range(0, 2), 's': pd.arrays.SparseArray([0, 5])})", "x['n'] = [1, 2]", look="x.astype(str).to_dict(), x.dtypes.astype(str).to_dict()"),
    K("DataFrame of pyarrow types", "import pandas as pd\nx = pd.DataFrame({'a': pd.array([1, None], 'int64[pyarrow]'), 's': pd.array(['p', None], 'string[pyarrow]')})", "x.loc[1, 'a'] = 5", look="x.astype(str).to_dict(), x.dtypes.astype(str).to_dict()", needs=("pyarrow",)),
    K("DataFrame with a MultiIndex", "import pandas as pd\nx = pd.DataFrame({'v': [1, 2, 3]}, index=pd.MultiIndex.from_tuples([('a', 1), ('a', 2), ('b', 1)], names=['p', 'q']))", "x.loc[('a', 2), 'v'] = 9; x.index.names = ['r', 's']", look="x.v.to_dict(), x.index.names"),
    K("DataFrame with columns in levels", "import pandas as pd\nx = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([['a'], ['p', 'q']]))", "x[('b', 'p')] = 3", look="x.to_dict(), x.columns.nlevels"),
    K("DataFrame, a name twice", "import pandas as pd\nx = pd.DataFrame([[1, 2]], columns=['a', 'a'])", "x.iloc[0, 1] = 9", look="x.values.tolist(), x.columns.tolist()"),
    K("DataFrame, empty", "import pandas as pd\nx = pd.DataFrame(columns=['a'])", "x.loc[0] = [5]", look=FRAME),
    K("DataFrame with attrs", "import pandas as pd\nx = pd.DataFrame({'a': [1]})\nx.attrs['unit'] = ['m']", "x.attrs['unit'].append('s')", look="x.attrs, x.a.tolist()", inner="x.attrs['unit']"),
    K("DataFrame subclass", "import pandas as pd\nclass F(pd.DataFrame):\n  _metadata = ['tag']\n  @property\n  def _constructor(s): return F\nx = F({'a': [1, 2]})\nx.tag = 't'", "x['b'] = 3; x.tag = 'u'", look="x.to_dict(), x.tag, type(x) is F"),
    K("DataFrame whose column the notebook holds", "import pandas as pd\nx = pd.DataFrame({'a': [1, 2]})\ns = x['a']", "x.loc[0, 'a'] = 9", look="x.a.tolist(), s.tolist()"),
    K("Series", "import pandas as pd\nx = pd.Series([1, 2], index=['p', 'q'], name='s')", "x['p'] = 9; x['r'] = 5; x.name = 't'", look=SERIES),
    K("Series over an array of the notebook", "import pandas as pd, numpy as np\na = np.zeros(3)\nx = pd.Series(a, copy=False)", "a[0] = 5 + x[1]", look="x.tolist(), np.shares_memory(a, x.to_numpy())", wrong="there back seen", known="the two no longer share memory"),
    K("Index, RangeIndex, DatetimeIndex", "import pandas as pd\nx = [pd.Index(['a', 'b'], name='n'), pd.RangeIndex(3), pd.date_range('2026', periods=3, freq='D')]", "x.append(x[0].rename('m'))", look="[(i.tolist(), i.name, type(i).__name__) for i in x], x[2].freqstr", inner="x[2]"),
    K("MultiIndex", "import pandas as pd\nx = pd.MultiIndex.from_product([['a', 'b'], [1, 2]], names=['p', 'q'])", "x.names = ['r', 's']", look="x.tolist(), x.names"),
    K("Timestamp, Timedelta, Period, Interval", "import pandas as pd\nx = (pd.Timestamp('2026-01-01', tz='UTC'), pd.Timedelta('1D'), pd.Period('2026-01'), pd.Interval(0, 1))"),
    K("NaT and NA", "import pandas as pd\nx = (pd.NaT, pd.NA)", look="x[0] is pd.NaT, x[1] is pd.NA"),
    K("date offsets", "import pandas as pd\nx = (pd.offsets.BDay(2), pd.offsets.MonthEnd(), pd.DateOffset(months=3))"),
    K("pandas dtypes", "import pandas as pd\nx = (pd.CategoricalDtype(['a']), pd.Int64Dtype(), pd.DatetimeTZDtype('ns', 'UTC'))"),
    K("groupby", "import pandas as pd\ndf = pd.DataFrame({'k': ['a', 'b', 'a'], 'v': [1, 2, 3]})\nx = df.groupby('k')", look="x.v.sum().to_dict(), x.ngroups", note="it is over the notebook's own frame"),
    K("rolling window", "import pandas as pd\nx = pd.Series([1., 2., 3.]).rolling(2)", look="x.sum().fillna(0).tolist()"),
    K("resampler", "import pandas as pd\nx = pd.Series([1, 2, 3], index=pd.date_range('2026', periods=3)).resample('2D')", look="x.sum().tolist()"),
    K("Styler", "import pandas as pd\nx = pd.DataFrame({'a': [1]}).style", "x.set_caption('c')", look="x.caption, x.data.a.tolist()", inner="x.data", needs=("jinja2",)),
    K("reader of chunks of a text file", "import pandas as pd, io\nx = pd.read_csv(io.StringIO('a\\n1\\n2\\n'), chunksize=1)", look="x.read(1).a.tolist()", once=True, after="x.close()", behind="x._engine._reader: pandas._libs.parsers.TextReader"),
), needs=("pandas",))

POLARS = Family("polars", (
    K("DataFrame", "import polars as pl\nx = pl.DataFrame({'a': [1, 2], 's': ['p', None], 'l': [[1], []]})", "x[0, 'a'] = 9; x.insert_column(1, pl.Series('n', [5, 6]))", look="x.to_dict(as_series=False), x.schema"),
    K("Series", "import polars as pl\nx = pl.Series('s', [1, 2, None])", "x[0] = 9", look="x.to_list(), x.name, x.dtype"),
    K("Series of dates, categories, structs", "import polars as pl, datetime as dt\nx = [pl.Series([dt.date(2026, 1, 1)]), pl.Series(['a', 'b'], dtype=pl.Categorical), pl.Series([{'k': 1}])]", "x[1] = x[1].rename('c')", look="[(s.to_list(), s.dtype, s.name) for s in x]", inner="x[2]"),
    K("LazyFrame", "import polars as pl\nx = pl.LazyFrame({'a': [1, 2]}).filter(pl.col('a') > 1)", look="x.collect().to_dict(as_series=False)"),
    K("expression", "import polars as pl\nx = pl.col('a') * 2", look="pl.DataFrame({'a': [3]}).select(x).item()"),
    K("data types and schema", "import polars as pl\nx = pl.Schema({'a': pl.Int8, 'b': pl.List(pl.String)})", "x['c'] = pl.Date", look="dict(x)"),
), needs=("polars",))

ARROW = Family("pyarrow", (
    K("Array", "import pyarrow as pa\nx = pa.array([1, None, 3])", look="x.to_pylist(), x.type"),
    K("Array, a slice", "import pyarrow as pa\nx = pa.array(['a', 'bb', None, 'd'])[1:3]", look="x.to_pylist(), x.type, x.offset"),
    K("Array of lists, structs, dictionary", "import pyarrow as pa\nx = [pa.array([[1], None]), pa.array([{'k': 1}]), pa.array(['a', 'b', 'a']).dictionary_encode()]", "x.append(x[0][0])", look="[v.as_py() if isinstance(v, pa.Scalar) else v.to_pylist() for v in x]", inner="x[2]"),
    K("ChunkedArray", "import pyarrow as pa\nx = pa.chunked_array([[1, 2], [3]])", look="x.to_pylist(), x.num_chunks"),
    K("Table", "import pyarrow as pa\nx = pa.table({'a': [1, 2], 's': ['p', None]}).replace_schema_metadata({'m': 'v'})", look="x.to_pydict(), x.schema.metadata"),
    K("RecordBatch", "import pyarrow as pa\nx = pa.record_batch({'a': [1, 2]})", look="x.to_pydict()"),
    K("Schema, Field, DataType", "import pyarrow as pa\nx = pa.schema([pa.field('a', pa.list_(pa.int8()), nullable=False)], metadata={'k': 'v'})", look="x, x.metadata"),
    K("Scalar", "import pyarrow as pa\nx = pa.scalar(5, pa.int16())", look="x.as_py(), x.type"),
    K("Buffer", "import pyarrow as pa\nx = pa.py_buffer(b'abc')", look="x.to_pybytes()"),
    K("compute expression", "import pyarrow.compute as pc\nx = pc.field('a') > 1", look="str(x)"),
), needs=("pyarrow",))
# fmt: on
