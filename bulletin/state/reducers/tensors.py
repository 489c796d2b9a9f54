"""Tensors of torch: memory travels once for all tensors that share it, through buffers, and always lands on the CPU."""

import sys
from typing import TYPE_CHECKING, Any

from bulletin.state.landing import Reduced

if TYPE_CHECKING:
    from bulletin.state.codec import Encoder


def reduce_tensor(encoder: "Encoder", tensor: Any) -> Reduced:
    """A window on a storage, its gradient and its attributes; a non-leaf travels without its graph."""
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided or tensor.is_quantized or type(tensor) not in {torch.Tensor, torch.nn.Parameter}:
        return NotImplemented
    storage = tensor.untyped_storage()
    key = storage._cdata
    region = encoder.regions.get(key)
    if region is None:
        flat = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        region = encoder.regions[key] = _Region(flat.cpu().numpy())
        encoder.alive.append(storage)
    address = storage.data_ptr()
    encoder.owners.setdefault(key, []).append((id(tensor), address, address + storage.nbytes()))
    window = (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    marks = (tensor.is_conj(), tensor.is_neg())
    is_leaf_with_grad = tensor.is_leaf and tensor.requires_grad
    grad = tensor.grad if is_leaf_with_grad else None
    args = (type(tensor) is torch.nn.Parameter, region, *window, *marks, is_leaf_with_grad)
    return make_tensor, args, (grad, dict(tensor.__dict__)), None, None, fill_tensor


class _Region:
    """The bytes of a storage."""

    def __init__(self, flat: Any) -> None:
        self.flat = flat

    def __reduce__(self) -> Any:
        return load_storage, (self.flat,)


def load_storage(flat: Any) -> Any:
    """A storage that looks at the bytes of an array."""
    import importlib

    torch = importlib.import_module("torch")
    return torch.from_numpy(flat).untyped_storage()


def make_tensor(
    is_parameter: Any, storage: Any, dtype: str, shape: Any, stride: Any, start: int, conj: Any, neg: Any, grads: Any
) -> Any:
    """A tensor on the CPU."""
    torch = sys.modules["torch"]
    tensor = torch.empty(0, dtype=getattr(torch, dtype)).set_(storage, start, shape, stride)
    tensor = torch._conj(tensor) if conj else tensor
    tensor = torch._neg_view(tensor) if neg else tensor
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad=bool(grads))
    return tensor.requires_grad_(bool(grads))


def fill_tensor(tensor: Any, state: tuple[Any, dict[str, Any]]) -> None:
    """Its gradient, and what the user has put on it."""
    grad, attributes = state
    if grad is not None:
        tensor.grad = grad
    tensor.__dict__.update(attributes)
