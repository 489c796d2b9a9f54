# %% [markdown]
# needs: omegaconf

# %%
from omegaconf import OmegaConf, DictConfig, MISSING
from dataclasses import dataclass, field
cfg = OmegaConf.create({"lr": 0.1, "model": {"n": 2, "m": "${model.n}"}, "path": "${join:a,b}"})
OmegaConf.register_new_resolver("join", lambda *a: "/".join(a))
model = cfg.model
print(cfg.path, cfg.model.m)

# %%
cfg.model.n = 7
print(model.m, cfg.model is model, cfg.path)

# %%
@dataclass
class Train:
    steps: int = 3
    tags: list[str] = field(default_factory=list)
train = OmegaConf.structured(Train)
train.tags.append("a")
print(OmegaConf.to_yaml(train), OmegaConf.get_type(train).__name__)

# %%
OmegaConf.set_readonly(cfg, True)
merged = OmegaConf.merge({"model": {"k": 1}}, cfg)
print(merged.model, OmegaConf.is_readonly(cfg), train.tags)

# %%
print(OmegaConf.to_object(train) == Train(3, ["a"]), merged._get_node("lr")._key())

# %%
# raises: ValidationError
train.steps = "many"
