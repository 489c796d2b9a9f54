# ruff: noqa: E501  a row is a line
"""Kinds of torch."""

from .kind import Family, Kind as K

T = "import torch\ntorch.manual_seed(0)\n"
STATE = "{k: v.tolist() for k, v in x.state_dict().items()}, x.training, type(x).__name__"
STEP = f"{T}m = torch.nn.Linear(2, 1)\n{{}}\ndef step():\n  x.zero_grad(); m(torch.ones(1, 2)).sum().backward(); x.step()\nstep()"
OPTIMIZED = "m.weight.tolist(), [[type(v) if v is None else v.tolist() if torch.is_tensor(v) else v for v in s.values() if not isinstance(v, list)] for s in x.state.values()], x.param_groups[0]['lr'], all(p is q for p, q in zip(x.param_groups[0]['params'], m.parameters()))"

# fmt: off
TENSORS = Family("torch: tensors", (
    K("tensor of float32", "import torch\nx = torch.arange(4.)", "x[0] = 9; x.mul_(2)", look="x.tolist(), x.dtype, x.device"),
    K("memory format, layout, quantization scheme, dtype", "import torch\nx = [torch.contiguous_format, torch.strided, torch.per_tensor_affine, torch.float32]", "x.append(torch.sparse_coo)", look="x, x[0] is torch.contiguous_format, x[2] is torch.per_tensor_affine", inner="x[1]"),
    K("tensor of float64, float16, bfloat16", "import torch\nx = [torch.ones(2, dtype=t) for t in (torch.float64, torch.float16, torch.bfloat16)]", "x[0][0] = 9; x[2].mul_(3)", look="[(t.tolist(), t.dtype) for t in x]", inner="x[2]"),
    K("tensor of int64, uint8, bool", "import torch\nx = [torch.ones(2, dtype=t) for t in (torch.int64, torch.uint8, torch.bool)]", "x[0][0] = 9; x[2].logical_not_()", look="[(t.tolist(), t.dtype) for t in x]", inner="x[2]"),
    K("tensor of complex64", "import torch\nx = torch.zeros(2, dtype=torch.complex64)", "x[0] = 1 + 2j", look="x.tolist(), x.dtype"),
    K("tensor of float8", "import torch\nx = torch.ones(2).to(torch.float8_e4m3fn)", "x.copy_(torch.zeros(2))", look="x.float().tolist(), x.dtype"),
    K("tensor, conjugate view", "import torch\nx = torch.tensor([1 + 2j]).conj()", "x[0] = 3j", look="x.tolist(), x.is_conj()"),
    K("tensor, 0-dimensional", "import torch\nx = torch.tensor(3)", "x += 1", look="x.item(), x.shape"),
    K("tensor, empty", "import torch\nx = torch.empty(0, 3)", look="x.shape, x.dtype"),
    K("tensor, resized in place", "import torch\nx = torch.arange(4)", "x.resize_(2, 3).fill_(7)", look="x.tolist(), x.shape"),
    K("tensor, its data replaced", "import torch\nx = torch.arange(4.)", "x.data = torch.ones(2)", look="x.tolist()"),
    K("view of a tensor", "import torch\na = torch.zeros(6)\nx = a[2:4]", "x[0] = 7", look="x.tolist(), a.tolist(), x.storage_offset()"),
    K("tensor whose view the notebook holds", "import torch\nx = torch.zeros(6)\nv = x.view(2, 3)[1]", "x[3] = 7", look="x.tolist(), v.tolist()"),
    K("transposed tensor", "import torch\nx = torch.arange(6).view(2, 3).t()", "x[2, 0] = 50", look="x.tolist(), x.stride(), x.is_contiguous()"),
    K("tensor, channels last", "import torch\nx = torch.zeros(1, 2, 2, 2).to(memory_format=torch.channels_last)", "x[0, 1, 0, 0] = 5", look="x.tolist(), x.stride()"),
    K("expanded tensor", "import torch\na = torch.zeros(2, 1)\nx = a.expand(2, 3)", "a[0] = 5 + x[1, 1]", look="x.tolist(), x.stride()"),
    K("tensor over a numpy array", "import torch, numpy as np\na = np.zeros(3)\nx = torch.from_numpy(a)", "x[0] = 5", look="x.tolist(), a.tolist()", needs=("numpy",)),
    K("numpy array over a tensor", "import torch\nt = torch.zeros(3)\nx = t.numpy()", "x[0] = 5", look="x.tolist(), t.tolist()", needs=("numpy",)),
    K("leaf with a gradient", "import torch\nx = torch.ones(2, requires_grad=True)\n(x * 3).sum().backward()", "x.grad.zero_(); (x ** 2).sum().backward()", look="x.tolist(), x.grad.tolist(), x.requires_grad, x.is_leaf", inner="x.grad"),
    K("tensor with a history", "import torch\nw = torch.ones(2, requires_grad=True)\nx = (w * 3).sum()", look="x.item(), x.requires_grad, x.grad_fn is not None", note="the graph of a computation belongs to its process: `.detach()` it first", wrong="there back", known="the graph of a computation does not travel, and nothing says so"),
    K("Parameter", "import torch\nx = torch.nn.Parameter(torch.ones(2))", "with torch.no_grad(): x.mul_(3)", look="x.tolist(), x.requires_grad, type(x).__name__"),
    K("tensor with attributes", "import torch\nx = torch.ones(2)\nx.tag = ['t']", "x.tag.append('u')", look="x.tolist(), x.tag", inner="x.tag"),
    K("tensor with a hook", "import torch\nseen = []\nx = torch.ones(2, requires_grad=True)\nh = x.register_hook(lambda g: seen.append(g.tolist()))", "x.sum().backward()", look="seen, x.grad.tolist() if x.grad is not None else None"),
    K("subclass of Tensor", "import torch\nclass S(torch.Tensor): pass\nx = torch.ones(2).as_subclass(S)\nx.tag = 1", "x.mul_(2); x.tag = 2", look="x.tolist(), x.tag, type(x) is S"),
    K("sparse tensor, COO", "import torch\nx = torch.eye(2).to_sparse().coalesce()", "x.values()[0] = 9", look="x.to_dense().tolist(), x.layout, x.is_coalesced()"),
    K("sparse tensor, CSR", "import torch, warnings\nwith warnings.catch_warnings():\n  warnings.simplefilter('ignore')\n  x = torch.eye(2).to_sparse_csr()", "x.values()[0] = 9", look="x.to_dense().tolist(), x.layout"),
    K("nested tensor", "import torch, warnings\nwith warnings.catch_warnings():\n  warnings.simplefilter('ignore')\n  x = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])", look="[t.tolist() for t in x.unbind()]", refused="torch.Tensor"),
    K("storage", "import torch\nx = torch.arange(3, dtype=torch.uint8).untyped_storage()", "x[0] = 9", look="x.tolist(), x.nbytes()", wrong="there back seen kept", known="the executor cannot make it"),
    K("tensor on the device meta", "import torch\nx = torch.empty(3, device='meta')", look="x.shape, x.device"),
    K("Size, dtype, device", "import torch\nx = [torch.Size([1, 2]), torch.float32, torch.device('cpu', 0)]", "x.append(torch.int8)", inner="x[0]"),
    K("Generator", "import torch\nx = torch.Generator().manual_seed(3)", "t = torch.rand(2, generator=x)", look="x.initial_seed(), x.get_state().sum().item()"),
    K("PackedSequence", "import torch\nfrom torch.nn.utils.rnn import pack_sequence\nx = pack_sequence([torch.ones(2), torch.ones(1)])", "x.data[0] = 5", look="x.data.tolist(), x.batch_sizes.tolist()", inner="x.data"),
    K("named result of max", "import torch\nx = torch.tensor([[1., 5.]]).max(1)", "x.values[0] = 9", look="x.values.tolist(), x.indices.tolist(), type(x).__name__", inner="x.values"),
), needs=("torch",))

MODULES = Family("torch: modules, optimizers and data", (
    K("Linear", f"{T}x = torch.nn.Linear(2, 1)", "with torch.no_grad(): x.weight.fill_(3)", look=STATE, inner="x.weight"),
    K("Conv2d", f"{T}x = torch.nn.Conv2d(1, 1, 2)", "with torch.no_grad(): x.bias.fill_(3)", look=STATE, inner="x.bias"),
    K("BatchNorm1d", f"{T}x = torch.nn.BatchNorm1d(2)", "x(torch.arange(4.).view(2, 2)); x.eval()", look=STATE, inner="x.running_mean"),
    K("Embedding, LayerNorm, Dropout", f"{T}x = torch.nn.Sequential(torch.nn.Embedding(3, 2), torch.nn.LayerNorm(2), torch.nn.Dropout(.5))", "x.eval(); x[2].p = .1", look=f"{STATE}, x[2].p", inner="x[0].weight"),
    K("LSTM", f"{T}x = torch.nn.LSTM(2, 3)", "with torch.no_grad(): x.weight_ih_l0.fill_(1)", look="x(torch.ones(1, 1, 2))[0].tolist()", inner="x.weight_ih_l0"),
    K("TransformerEncoderLayer", f"{T}x = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()", "with torch.no_grad(): x.linear1.weight.mul_(2)", look="round(x(torch.ones(1, 2, 4)).sum().item(), 4), [p.sum().item() for p in x.parameters()]", inner="x.self_attn.in_proj_weight"),
    K("Sequential", f"{T}x = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())", "x.append(torch.nn.Flatten()); x[0].weight.data.zero_()", look=f"{STATE}, len(x)", inner="x[0]"),
    K("ModuleDict, ModuleList, ParameterList", f"{T}x = torch.nn.ModuleDict({{'l': torch.nn.ModuleList([torch.nn.Linear(1, 1)]), 'p': torch.nn.ParameterList([torch.ones(1)])}})", "x['n'] = torch.nn.Identity(); x['p'][0].data.fill_(7)", look=f"{STATE}, list(x)", inner="x['l'][0]"),
    K("Module of the notebook", f"{T}class Net(torch.nn.Module):\n  def __init__(s):\n    super().__init__(); s.a = torch.nn.Linear(2, 2); s.register_buffer('n', torch.zeros(1)); s.log = []\n  def forward(s, v): s.n += 1; s.log.append(1); return s.a(v).relu()\nx = Net()", "x(torch.ones(1, 2)).sum().backward()", look=f"{STATE}, x.log, x.a.weight.grad is not None, type(x) is Net", inner="x.a"),
    K("Module with tied weights", f"{T}class Net(torch.nn.Module):\n  def __init__(s):\n    super().__init__(); s.a = torch.nn.Embedding(3, 2); s.b = torch.nn.Linear(2, 3, bias=False); s.b.weight = s.a.weight\nx = Net()", "x.b.weight.data.fill_(5)", look=f"{STATE}, x.a.weight is x.b.weight", inner="x.a.weight"),
    K("Module with hooks", f"{T}seen = []\nx = torch.nn.Linear(1, 1)\nh = x.register_forward_hook(lambda m, a, out: seen.append(m is x))", "x(torch.ones(1)); h.remove()", look="seen, len(x._forward_hooks)", inner="x.weight"),
    K("Module with frozen parameters", f"{T}x = torch.nn.Linear(2, 1)", "x.weight.requires_grad_(False)", look="x.weight.requires_grad, x.bias.requires_grad", inner="x.weight"),
    K("Module, in another dtype", f"{T}x = torch.nn.Linear(2, 1)", "x.half()", look="x.weight.dtype, x.weight.tolist()", inner="x.weight"),
    K("parametrized Module", f"{T}from torch.nn.utils.parametrizations import weight_norm\nx = weight_norm(torch.nn.Linear(2, 1))", "x.parametrizations.weight.original0.data.fill_(2)", look="x.weight.tolist(), type(x).__name__", inner="x.parametrizations"),
    K("Module whose library drops an attribute for files", f"{T}class Net(torch.nn.Linear):\n  __module__ = 'library'\n  def __getstate__(s): return {{**vars(s), 'trainer': None}}\nx = Net(1, 1)\nx.trainer = [x]", "x.trainer.append(1)", look="x.trainer[0] is x, x.trainer[1:], x.weight.shape", inner="x.trainer"),
    K("Module, quantized", f"{T}import warnings\nwith warnings.catch_warnings():\n  warnings.simplefilter('ignore')\n  x = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(2, 2)), {{torch.nn.Linear}})", look="x(torch.ones(1, 2)).tolist(), type(x[0]).__module__"),
    K("lazy Module", f"{T}x = torch.nn.LazyLinear(1)", "x(torch.ones(1, 2))", look="x.in_features, type(x).__name__"),
    K("loss function", "import torch\nx = torch.nn.CrossEntropyLoss(weight=torch.ones(2))", "x.weight[0] = 5", look="x(torch.tensor([[1., 2.]]), torch.tensor([0])).item(), x.weight.tolist()", inner="x.weight"),
    K("state_dict", f"{T}m = torch.nn.Linear(2, 1)\nx = m.state_dict()", "x['weight'].fill_(4)", look="{k: v.tolist() for k, v in x.items()}, m.weight.tolist(), type(x).__name__, x._metadata", inner="x['weight']"),
    K("TorchScript function", "import torch, warnings\nwith warnings.catch_warnings():\n  warnings.simplefilter('ignore')\n  x = torch.jit.trace(torch.nn.ReLU(), torch.ones(1))", look="x(torch.tensor([-1.])).tolist()", refused="torch.jit._trace.TopLevelTracedModule"),
    *(K(f"{name} after a step", STEP.format(f"x = torch.optim.{call}"), "step()", look=OPTIMIZED, inner=inner) for name, call, inner in (
        ("SGD with momentum", "SGD(m.parameters(), .1, momentum=.9)", "x.state[m.weight]['momentum_buffer']"),
        ("Adam", "Adam(m.parameters(), .1)", "x.state[m.weight]['exp_avg']"),
        ("AdamW", "AdamW(m.parameters(), .1, amsgrad=True)", "x.param_groups[0]"),
        ("RMSprop", "RMSprop(m.parameters(), .1)", "x.state"),
    )),
    K("LBFGS after a step", f"{T}w = torch.zeros(2, requires_grad=True)\nx = torch.optim.LBFGS([w], max_iter=2)\ndef loss():\n  x.zero_grad(); v = ((w - 3) ** 2).sum(); v.backward(); return v\nx.step(loss)", "v = x.step(loss).item()", look="w.tolist(), x.state[w]['n_iter']", inner="x.state[w]"),
    K("learning rate scheduler", f"{T}m = torch.nn.Linear(1, 1)\no = torch.optim.SGD(m.parameters(), 1.)\nx = torch.optim.lr_scheduler.StepLR(o, 1, .5)\no.step(); x.step()", "o.step(); x.step()", look="x.get_last_lr(), x.last_epoch, o.param_groups[0]['lr'], x.optimizer is o", inner="x.optimizer"),
    K("LambdaLR, SequentialLR", f"{T}o = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.)\nx = torch.optim.lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1))", "o.step(); x.step()", look="x.get_last_lr(), o.param_groups[0]['lr']", inner="x.lr_lambdas[0]"),
    K("ReduceLROnPlateau", f"{T}o = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.)\nx = torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0)", "x.step(1.); x.step(2.); x.step(3.)", look="x.best, o.param_groups[0]['lr']"),
    K("GradScaler", "import torch\nx = torch.amp.GradScaler('cpu', init_scale=4.)", "x.scale(torch.ones(1)); x.update(8.)", look="x.get_scale(), x.is_enabled()"),
    K("Exponential moving average of weights", f"{T}m = torch.nn.Linear(1, 1)\nx = torch.optim.swa_utils.AveragedModel(m)", "x.update_parameters(m)", look="x.n_averaged.item(), x.module.weight.tolist()", inner="x.module"),
    K("Dataset of the notebook", "import torch\nclass D(torch.utils.data.Dataset):\n  def __init__(s): s.v = [1, 2]\n  def __len__(s): return len(s.v)\n  def __getitem__(s, i): return s.v[i] * k\nk = 2\nx = D()", "x.v.append(3)", look="[x[i] for i in range(len(x))]", inner="x.v"),
    K("TensorDataset", "import torch\nx = torch.utils.data.TensorDataset(torch.arange(3.))", "x.tensors[0][0] = 9", look="[t[0].item() for t in x]", inner="x.tensors[0]"),
    K("Subset, random_split", "import torch\nd = list(range(6))\nx = torch.utils.data.random_split(d, [4, 2], torch.Generator().manual_seed(1))", "x[0].indices.append(0)", look="[list(s) for s in x], x[0].dataset is d", inner="x[1]"),
    K("DataLoader", "import torch\nx = torch.utils.data.DataLoader(torch.arange(4.), 2, shuffle=True, generator=torch.Generator().manual_seed(1))", "b = [t.tolist() for t in x]", look="x.batch_size, x.generator.get_state().sum().item()", inner="x.generator"),
    K("iterator of a DataLoader", "import torch\nx = iter(torch.utils.data.DataLoader(torch.arange(4.), 2))", look="type(x).__name__", refused="torch.utils.data.dataloader._SingleProcessDataLoaderIter"),
    K("distributions", "import torch\nx = torch.distributions.Normal(torch.zeros(2), 1.)", "x.loc[0] = 5", look="x.mean.tolist(), x.log_prob(torch.zeros(2)).tolist()", inner="x.loc"),
    K("vmap'd function", "import torch\nx = torch.func.vmap(lambda v: v * 2)", look="x(torch.ones(2)).tolist()"),
    K("autograd.Function of the notebook", "import torch\nclass x(torch.autograd.Function):\n  @staticmethod\n  def forward(ctx, a): return a * 2\n  @staticmethod\n  def backward(ctx, g): return g * 7", look="torch.autograd.grad(x.apply(w := torch.ones(1, requires_grad=True)), w)[0].tolist()"),
), needs=("torch",))
# fmt: on
