"""Tensors of torch: a shape on a storage, whose memory travels once for all that look at it.

A tensor of a device lands in the notebook as a CPU tensor that remembers its device, and goes back there by itself.
"""

import importlib
import sys
import weakref
from typing import Any

from bulletin.cpython.pickle_memo import new_object
from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, refuse
from bulletin.state.memory import Region

from .arrays import bytes_of

#: Tensors that are here in place of one on a device, by id, and the device.
_homes: dict[int, tuple[Any, str]] = {}


def reduce_tensor(encoder: Encoding, tensor: Any) -> Reduced:
    """Reduce a tensor to a window on a storage, its gradient and its attributes; a non-leaf goes without its graph.

    Left to pickle are subclasses, sparse and quantized tensors, and those on other devices than CPU and CUDA.
    """
    torch = sys.modules["torch"]
    is_usual = type(tensor) in {torch.Tensor, torch.nn.Parameter, torch.nn.Buffer}
    if (
        not is_usual
        or tensor.layout != torch.strided
        or tensor.is_quantized
        or tensor.device.type not in {"cpu", "cuda"}
    ):
        return NotImplemented
    storage = tensor.untyped_storage()
    device = _Cuda if tensor.device.type == "cuda" else None
    region_and_offset: tuple[int, int] = (-1, 0)
    if storage.nbytes():
        start = storage.data_ptr()
        region_and_offset = encoder.region(
            encoder.finder.find_or_add(storage, start, storage.nbytes(), device), start, tensor
        )
    window = (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    is_leaf_with_grad = tensor.is_leaf and tensor.requires_grad
    marks = (tensor.is_conj(), tensor.is_neg(), is_leaf_with_grad, home_of(tensor))
    grad = tensor.grad if tensor.is_leaf else None
    hooks = tensor._backward_hooks if is_leaf_with_grad else None
    kind = type(tensor).__name__
    return (
        make_tensor,
        (RECEIVER, kind, *region_and_offset, *window, *marks),
        (RECEIVER, grad, hooks, dict(tensor.__dict__)),
        None,
        None,
        fill_tensor,
    )


def home_of(tensor: Any) -> str:
    """Return the device of a tensor, or the one that it will go back to; empty for the CPU."""
    if tensor.device.type != "cpu":
        return str(tensor.device)
    known = _homes.get(id(tensor))
    return known[1] if known is not None and known[0]() is tensor else ""


def _remember(tensor: Any, home: str) -> None:
    key = id(tensor)
    if home and tensor.device.type == "cpu":
        _homes[key] = weakref.ref(tensor, lambda _: _homes.pop(key, None)), home
    else:
        _homes.pop(key, None)


class _Cuda:
    """Reaches the memory of a storage on a GPU."""

    @staticmethod
    def read(owner: Any) -> memoryview:
        """Copy all bytes of a storage to the CPU."""
        found: memoryview = _flat(owner).cpu().numpy().data
        return found.cast("B")

    @staticmethod
    def write(owner: Any, offset: int, data: Any) -> None:
        """Put bytes into a storage, `offset` bytes from its start."""
        torch = sys.modules["torch"]
        came = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        _flat(owner)[offset : offset + came.numel()].copy_(came)


def _flat(storage: Any) -> Any:
    torch = sys.modules["torch"]
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def make_tensor(
    transaction: LoadTransaction,
    kind: str,
    number: int,
    offset: int,
    dtype: str,
    shape: Any,
    stride: Any,
    start: int,
    is_conj: bool,
    is_neg: bool,
    grads: bool,
    home: str,
) -> Any:
    """Make a tensor where it belongs, or change the existing one to be like it.

    It belongs on the device that it comes from, or on the CPU of a side that has none; there it remembers its `home`.
    """
    torch: Any = sys.modules.get("torch") or importlib.import_module("torch")
    old = transaction.take_existing()
    cls = {"Parameter": torch.nn.Parameter, "Buffer": torch.nn.Buffer}.get(kind, torch.Tensor)
    with torch.no_grad():
        storage, before = _storage(torch, transaction, number, home, old)
        element = torch.empty(0, dtype=getattr(torch, dtype), device=storage.device)
        tensor = element.set_(storage, offset // element.element_size() + start, shape, stride)
        tensor = torch._conj(tensor) if is_conj else tensor
        tensor = torch._neg_view(tensor) if is_neg else tensor
        if type(old) is cls and old.layout == torch.strided:
            if not (before and _is_laid_out(old, tensor)):
                transaction.undoable(_put_back, old, old.data, old.grad)
                _set_data(old, tensor)
            tensor = old
        elif old is not None:
            transaction.replaced.append((old, tensor))
    if tensor is not old and cls is not torch.Tensor:
        fresh = cls(tensor) if cls is torch.nn.Buffer else cls(tensor, requires_grad=grads)
        transaction.replaced[-1:] = [(old, fresh)] if old is not None else transaction.replaced[-1:]
        tensor = fresh
    if tensor.is_leaf and tensor.requires_grad != grads:
        transaction.undoable(tensor.requires_grad_, tensor.requires_grad)
        tensor.requires_grad_(grads)
    _remember(tensor, home)
    return tensor


def _storage(torch: Any, transaction: LoadTransaction, number: int, home: str, old: Any) -> tuple[Any, bool]:
    """Return the storage of a region, and whether the old tensor looks at it already."""
    if number < 0:
        return torch.empty(0, dtype=torch.uint8).untyped_storage(), False
    region: Region = transaction.regions[number]
    if not region.address:
        if home.startswith("cuda") and torch.cuda.is_available():
            index = torch.device(home).index or 0
            device = torch.device("cuda", index if index < torch.cuda.device_count() else 0)
            storage = torch.empty(region.size, dtype=torch.uint8, device=device).untyped_storage()
            region.land(storage, storage.data_ptr(), _Cuda)
        else:
            storage = torch.empty(region.size, dtype=torch.uint8).untyped_storage()
            region.land(storage, storage.data_ptr())
        return storage, False
    if old is not None and old.layout == torch.strided:
        storage = old.untyped_storage()
        if storage.data_ptr() <= region.address < storage.data_ptr() + max(storage.nbytes(), 1):
            return storage, storage.data_ptr() == region.address
    if hasattr(region.owner, "data_ptr") and region.owner.data_ptr() == region.address:
        return region.owner, False
    return torch.from_numpy(bytes_of(importlib.import_module("numpy"), region)).untyped_storage(), False


def _is_laid_out(old: Any, new: Any) -> bool:
    return bool(
        old.data_ptr() == new.data_ptr()
        and old.dtype == new.dtype
        and old.shape == new.shape
        and old.stride() == new.stride()
        and old.is_conj() == new.is_conj()
        and old.is_neg() == new.is_neg()
    )


def _set_data(tensor: Any, data: Any) -> None:
    with sys.modules["torch"].no_grad():
        tensor.data = data


def _set_grad(tensor: Any, grad: Any) -> None:
    """Undo a change of a gradient. One of another shape waits until the tensor has its old shape again."""
    tensor.grad = grad if grad is None or grad.shape == tensor.shape else None


def _put_back(tensor: Any, data: Any, grad: Any) -> None:
    tensor.grad = None
    _set_data(tensor, data)
    tensor.grad = grad


def fill_tensor(tensor: Any, state: tuple[LoadTransaction, Any, Any, dict[str, Any]]) -> None:
    """Set the gradient of a tensor, its hooks, and what the user has put on it."""
    transaction, grad, hooks, attributes = state
    if hooks is not tensor._backward_hooks:
        transaction.undoable(setattr, tensor, "_backward_hooks", tensor._backward_hooks)
        tensor._backward_hooks = hooks
    if tensor.is_leaf and tensor.grad is not grad:
        transaction.undoable(_set_grad, tensor, tensor.grad)
        tensor.grad = grad
    if tensor.__dict__ or attributes:
        transaction.undoable(tensor.__dict__.update, dict(tensor.__dict__))
        transaction.undoable(tensor.__dict__.clear)
        tensor.__dict__.clear()
        tensor.__dict__.update(attributes)


# --- what torch makes of tensors


def is_optimizer(kind: type) -> bool:
    """Tell whether a type is an optimizer that pickles as all do."""
    module: Any = sys.modules.get("torch.optim.optimizer")
    if module is None or not issubclass(kind, module.Optimizer):
        return False
    return bool(kind.__getstate__ is module.Optimizer.__getstate__)


def reduce_optimizer(_: Encoding, optimizer: Any) -> Reduced:
    """Reduce an optimizer to all its attributes. Its own way leaves out what schedulers and people put on it."""
    return new_object, (type(optimizer),), (RECEIVER, dict(vars(optimizer))), None, None, fill_optimizer


def fill_optimizer(optimizer: Any, state: tuple[LoadTransaction, dict[str, Any]]) -> None:
    """Set the attributes of an optimizer, and do what torch does to a class when it first makes one of it."""
    vars(optimizer).update(state[1])
    optimizer._patch_step_function()


def says_less(kind: Any) -> bool:
    """Tell whether a module's library leaves something out in `__getstate__`, or refuses, with no `__setstate__`.

    The library has files in mind: Lightning drops the trainer, and torch refuses what has a parametrization. Those that
    come with a `__setstate__` are left to it, and so are the notebook's own classes.
    """
    nn: Any = sys.modules.get("torch.nn")
    if nn is None or not issubclass(kind, nn.Module) or kind.__reduce__ is not object.__reduce__:
        return False
    owner: Any = next(base for base in kind.__mro__ if base is object or "__getstate__" in vars(base))
    is_usual = kind.__reduce_ex__ is object.__reduce_ex__ and "__setstate__" not in vars(owner)
    return is_usual and owner.__module__ not in {"builtins", "__main__"}


def is_script(kind: type) -> bool:
    """Tell whether a type is one of TorchScript, whose parts could come, and be of no use."""
    script: Any = sys.modules.get("torch.jit")
    return script is not None and issubclass(kind, script.ScriptModule)


def reduce_script(_: Encoding, module: Any) -> Reduced:
    """Refuse a module of TorchScript as a whole, with Unpicklable."""
    return refuse(module)


def reduce_module(_: Encoding, module: Any) -> Reduced:
    """Reduce a module to all its attributes, as if its class said nothing."""
    return new_object, (type(module),), (RECEIVER, dict(vars(module))), None, None, fill_module


def fill_module(module: Any, state: tuple[LoadTransaction, dict[str, Any]]) -> None:
    """Set the attributes of a module, or of a loader of data."""
    vars(module).update(state[1])


def is_loader(kind: Any) -> bool:
    """Tell whether a type is torch's `DataLoader`, or is made of it and does not say itself how it travels."""
    data: Any = sys.modules.get("torch.utils.data")
    return (
        data is not None
        and issubclass(kind, data.DataLoader)
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and getattr(kind, "__getstate__", None) is getattr(object, "__getstate__", None)
    )


def reduce_loader(encoder: Encoding, loader: Any) -> Reduced:
    """Reduce a loader of data to all its attributes but the workers that wait for the next round.

    Each side has its own workers, or starts some.
    """
    if id(loader) in encoder.dict_sharers:
        return NotImplemented
    state = {**vars(loader), "_iterator": None}
    return new_object, (type(loader),), (RECEIVER, state), None, None, fill_module


def reduce_generator(_: Encoding, generator: Any) -> Reduced:
    """Reduce torch's default generator to its name, and another one of the CPU to its state.

    The default one is each side's own, as cells rely on its state. torch's own way makes a tensor of a state anew each
    time, and would replace a generator instead of changing it.
    """
    torch = sys.modules["torch"]
    if generator is torch.default_generator:
        return getattr, (torch, "default_generator")
    if type(generator) is not torch.Generator or generator.device.type != "cpu":
        return NotImplemented
    return make_generator, (RECEIVER, bytes(generator.get_state().tolist()))


def make_generator(transaction: LoadTransaction, state: bytes) -> Any:
    """Set the existing generator to this state, or make a new one."""
    torch: Any = sys.modules.get("torch") or importlib.import_module("torch")
    old = transaction.take_existing()
    generator = torch.Generator()
    if type(old) is torch.Generator and old.device.type == "cpu":
        transaction.undoable(old.set_state, old.get_state())
        generator = old
    elif old is not None:
        transaction.replaced.append((old, generator))
    generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    return generator
