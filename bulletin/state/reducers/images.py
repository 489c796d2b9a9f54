"""Images of Pillow: what draws on one holds its pixels, so an image that is there gets new ones where it has them."""

import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.inplace import fill_dict
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .containers import instance_dict, make_unfilled


def is_image(kind: type) -> bool:
    """Tell whether a type is Pillow's, whatever file format the image came from."""
    pillow: Any = sys.modules.get("PIL.Image")
    return hasattr(pillow, "Image") and issubclass(kind, pillow.Image) and kind.__module__.startswith("PIL.")


def reduce_image(_: Encoding, image: Any) -> Reduced:
    """Reduce an image to its state, as Pillow has it."""
    state = image.__getstate__()
    _info, mode, size, *_rest = state
    return make_image, (RECEIVER, type(image), mode, size), (RECEIVER, state), None, None, fill_image


def make_image(transaction: LoadTransaction, kind: Any, mode: str, size: tuple[int, int]) -> Any:
    """Return the existing image if it is of that size and has such pixels; else a new one, without any."""
    old = transaction.take_existing()
    if type(old) is kind and (old.mode, old.size) == (mode, size) and instance_dict(old):
        return old
    made = kind.__new__(kind)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def fill_image(image: Any, state: tuple[LoadTransaction, list[Any]]) -> None:
    """Give an image its pixels and palette: in place if it has some."""
    transaction, of_image = state
    if not instance_dict(image):
        image.__setstate__(of_image)
        return
    before = image.__getstate__()
    transaction.undoable(_set_pixels, image, before)
    _set_pixels(image, of_image)


def is_draw(kind: type) -> bool:
    """Tell whether a type is what draws on an image."""
    pillow: Any = sys.modules.get("PIL.ImageDraw")
    return hasattr(pillow, "ImageDraw") and kind is pillow.ImageDraw


def reduce_draw(_: Encoding, draw: Any) -> Reduced:
    """Reduce what draws on an image to the image and how it draws; the pixels, which it holds, are of C code."""
    how = {name: held for name, held in vars(draw).items() if name not in _OF_PIXELS}
    return make_unfilled, (RECEIVER, type(draw)), (RECEIVER, draw._image, how), None, None, fill_draw


_OF_PIXELS = frozenset({"_image", "im", "draw"})


def fill_draw(draw: Any, state: tuple[LoadTransaction, Any, dict[str, Any]]) -> None:
    """Have it draw on this image, and in this way."""
    transaction, image, how = state
    transaction.undoable(fill_dict, vars(draw), dict(vars(draw)))
    if getattr(draw, "_image", None) is not image:
        draw.__init__(image, how["mode"])
    vars(draw).update(how)


def _set_pixels(image: Any, state: list[Any]) -> None:
    info, mode, _size, palette, pixels = state[:5]
    image.info = info
    if mode in {"L", "LA", "P", "PA"} and palette and palette != image.getpalette():
        image.putpalette(palette)
    image.frombytes(pixels)
