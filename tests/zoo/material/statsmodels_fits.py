# %% [markdown]
# needs: statsmodels, numpy, pandas

# %%
import statsmodels.formula.api as smf, numpy as np, pandas as pd
rng = np.random.default_rng(0)
df = pd.DataFrame({"x": np.arange(20.0), "g": list("ab") * 10})
df["y"] = 2 * df.x + (df.g == "b") + rng.normal(size=20)
double = lambda v: v * 2
model = smf.ols("y ~ double(x) + C(g)", df)
print(model.exog_names)

# %%
fit = model.fit()
print(fit.params.round(3).to_dict(), fit.model is model)

# %%
robust = fit.get_robustcov_results("HC1") if hasattr(fit, "get_robustcov_results") else fit
print(round(fit.rsquared, 4), robust.bse.round(4))

# %%
print(fit.predict(pd.DataFrame({"x": [1.0], "g": ["a"]})).round(3).tolist())

# %%
import statsmodels.api as sm
glm = sm.GLM(df.y, sm.add_constant(df.x), family=sm.families.Gaussian()).fit()
print(glm.params.round(3).tolist(), fit.f_test("double(x) = 1").pvalue.round(4))

# %%
fit.extra = "kept"
print(fit.extra, glm.family.link.__class__.__name__, len(fit.summary().tables))
