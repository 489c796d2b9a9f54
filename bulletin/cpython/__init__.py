"""Everything that relies on what CPython does not promise: one module for each of its parts, and nothing elsewhere.

Other modules of the packages call these functions instead; `tests/unit/bulletin/test_cpython.py` holds each fact to the
Python that runs it, and `test_cpython_alone.py` says where a new use of one would stand outside.

| module | what is relied on | why it is needed | what breaks if it changes |
| --- | --- | --- | --- |
| `refcounts` | `sys.getrefcount` counts every holder, and nothing else | to tell values that exist for a stream alone, instances whose `__dict__` somebody else holds, and singletons from new objects | temporaries enter the object table (memory grows, aliasing is seen where none is), `vars(x)` loses its instance, or a library's singleton is emptied |
| `referrers` | `gc.get_referrers` and `gc.get_referents` see through frames, proxies, iterators and values of threads; no reference is listed twice | to replace an object wherever it is held, to know that nobody holds it without a walk through the heap, and to find what a read-only view looks at, or what a `threading.local` was made with | what could not be changed in place keeps its old self in some places; proxies and iterators stay behind, or a thread's own value is made of too little |
| `class_layout` | bits 8 and 9 of `__flags__`, `__basicsize__`, and the C half of `abc` | to tell classes written in Python from those of C code, whose instances hold more than attributes, and which of those nobody can change | instances of C classes travel without what only C code knows, or a cell fails to put something into one |
| `pickle_memo` | the C pickler's memo, its places, its `fast` (which is deprecated), and the private names of `copyreg` | one number names an object on both sides: its place in the memo; a million texts need no places | the object table and the streams fall apart: every exchange fails; without `fast` they take longer |
| `raw_memory` | the buffer functions of the C interface, through `ctypes`; a tuple has the addresses of its items behind its head, an array of numpy that of its data, flags of one that of the array | to read and write the memory of arrays without numpy, and to place a memory view in its object; to compare a million texts at once; to see in no time that an array is where it was | arrays, memory views and long lists do not travel |
| `thread_hooks` | `Thread._bootstrap_inner`, `_thread._ThreadHandle` | to know whose output a thread's output is, and to send a thread that has ended | output of threads is shown below the wrong cell; threads stay behind |
| `import_system` | tracebacks are cut at `<frozen importlib._bootstrap_external>`, `ModuleSpec._initializing`, `os.environ._data` | clean tracebacks through our own loader; not to look at a module half-way; to read the environment in microseconds | frames of ours are shown to users; a module is remembered too early; each cell is slower |

Bytecode is read in `bulletin.state.lookups`, through `dis` alone. Private names of single libraries (`ctypes._Pointer`,
the cache of `logging`) stand in the reducer of that library.
"""  # noqa: E501  a table
