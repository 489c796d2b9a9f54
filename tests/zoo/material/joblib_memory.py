# %% [markdown]
# needs: joblib

# %%
import joblib, tempfile, os
folder = tempfile.mkdtemp()
memory = joblib.Memory(folder, verbose=0)
calls = []
print(joblib.hash([1, 2]))

# %%
@memory.cache
def slow(n):
    calls.append(n)
    return n * 2
print(slow(2), slow(2), calls)

# %%
results = joblib.Parallel(n_jobs=1)(joblib.delayed(pow)(i, 2) for i in range(4))
print(results, slow.func.__name__)

# %%
path = joblib.dump({"a": results, "b": results}, os.path.join(folder, "x.pkl"))[0]
back = joblib.load(path)
print(back["a"] is back["b"], slow(2), calls)

# %%
print(slow(3), calls, memory.location == folder)
