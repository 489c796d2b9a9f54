"""How single kinds of values travel: one file for each library or family.

`EXACT` is asked first, by a value's own type; then `of_family`, once per type and stream. A reducer takes the encoder
and the value, and returns what `__reduce_ex__` would, or NotImplemented for pickle's own way.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from bulletin.state.handles import Handle, reduce_handle
from bulletin.state.load_transaction import Reduced
from bulletin.state.missing_modules import is_missing, refuse_missing

from . import (
    array_flags,
    array_kinds,
    array_records,
    arrays,
    arrow,
    awkward_arrays,
    classes,
    constants,
    containers,
    context_variables,
    dtypes,
    exceptions,
    figures,
    files,
    functions,
    histograms,
    images,
    iterators,
    jitted,
    left_out,
    locks,
    loggers,
    named,
    pandas_frames,
    proxies,
    signals,
    soups,
    standard,
    structs,
    tensors,
    views,
    weakrefs,
    widgets,
    xml_trees,
)

__all__ = [
    "DICT_SHARERS",
    "EXACT",
    "OF_INSTANCES",
    "Place",
    "Reducer",
    "by_name",
    "is_buffer",
    "is_dtype",
    "is_in_place",
    "of_family",
    "places_of",
    "reduce_constant",
    "reduce_dict_sharer",
]

Reducer: TypeAlias = Callable[[Any, Any], Reduced]

Place = constants.Place
places_of, is_in_place, reduce_constant = constants.places_of, constants.is_in_place, constants.reduce_constant
reduce_dict_sharer, by_name = containers.reduce_dict_sharer, named.by_name
is_buffer, is_dtype = arrow.is_buffer, dtypes.is_dtype
#: Reducers of instances of Python's, which a module of a library may hold once for all.
OF_INSTANCES = frozenset(
    {
        array_kinds.reduce_kind,
        containers.reduce_bare,
        containers.reduce_by_base,
        containers.reduce_delegating,
        containers.reduce_user_container,
        containers.reduce_user_value,
        left_out.reduce_bare,
        left_out.reduce_setting,
    }
)
#: Reducers that let an instance keep the very dict that somebody else holds too.
DICT_SHARERS = frozenset({containers.reduce_user_container, exceptions.reduce_exception})

EXACT: dict[type, Reducer] = {
    **context_variables.EXACT,
    **functions.EXACT,
    **iterators.EXACT,
    **locks.EXACT,
    **named.EXACT,
    **standard.EXACT,
    **views.EXACT,
    **weakrefs.EXACT,
    type: classes.reduce_class,
    Handle: reduce_handle,
}


def of_family(kind: type) -> Reducer | None:
    """Choose the reducer for a type that `EXACT` does not list; None leaves its values to pickle's own way."""
    if structs.is_metaclass(kind):
        return structs.reduce_struct_class
    if issubclass(kind, type):
        return classes.reduce_class
    if is_missing(kind.__module__):
        return refuse_missing
    if issubclass(kind, BaseException):
        return exceptions.reduce_exception
    if classes.is_enum(kind):
        return classes.reduce_member
    top = (kind.__module__ or "").partition(".")[0] if isinstance(kind.__module__, str) else ""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if dtypes.is_dtype(kind):
        return dtypes.reduce_dtype
    if numpy is not None and kind is numpy.ndarray:
        return _reduce_array
    if awkward_arrays.is_array(kind):
        return awkward_arrays.reduce_array
    if histograms.is_storage(kind):
        return histograms.reduce_storage
    if numpy is not None and kind is numpy.memmap:
        return arrays.reduce_memmap
    if numpy is not None and array_kinds.is_kind(kind):
        return array_kinds.reduce_kind
    if array_records.is_record(kind):
        return array_records.reduce_record
    if torch is not None and hasattr(torch, "Tensor") and issubclass(kind, torch.Tensor):
        return tensors.reduce_tensor
    if array_flags.is_flags(kind):
        return array_flags.reduce_flags
    if arrays.is_generator(kind):
        return arrays.reduce_generator
    if torch is not None and kind is getattr(torch, "Generator", None):
        return tensors.reduce_generator
    if arrow.is_buffer(kind):
        return arrow.reduce_buffer
    if arrow.is_chunked(kind):
        return arrow.reduce_chunked
    if arrow.is_pandas_array(kind):
        return arrow.reduce_pandas_array
    if tensors.is_optimizer(kind):
        return tensors.reduce_optimizer
    if tensors.is_loader(kind):
        return tensors.reduce_loader
    if tensors.is_script(kind):
        return tensors.reduce_script
    if tensors.says_less(kind):
        return tensors.reduce_module
    if figures.is_registry(kind):
        return figures.reduce_registry
    if images.is_image(kind):
        return images.reduce_image
    if images.is_draw(kind):
        return images.reduce_draw
    if proxies.is_proxy(kind):
        return proxies.reduce_proxy
    if signals.is_signal(kind):
        return signals.reduce_signal
    if soups.is_node(kind):
        return soups.reduce_node
    if structs.is_struct(kind):
        return structs.reduce_struct
    if structs.is_coder(kind):
        return structs.reduce_coder
    if xml_trees.is_node(kind):
        return xml_trees.reduce_node
    if xml_trees.is_tree(kind):
        return xml_trees.reduce_tree
    if loggers.is_logger(kind):
        return loggers.reduce_logger
    if loggers.is_core(kind):
        return loggers.reduce_core
    if loggers.is_file_sink(kind):
        return loggers.reduce_file_sink
    if jitted.is_dispatcher(kind):
        return jitted.reduce_dispatcher
    if figures.is_figure(kind):
        return figures.reduce_figure
    if figures.is_part_of_plot(kind):
        return containers.reduce_user_container
    if pandas_frames.is_text_type(kind):
        return pandas_frames.reduce_text_type
    if pandas_frames.is_manager(kind):
        return pandas_frames.reduce_manager
    if pandas_frames.is_block(kind):
        return pandas_frames.reduce_block
    if pandas_frames.is_family(kind):
        return pandas_frames.reduce_frame
    if pandas_frames.is_older(kind):
        return pandas_frames.reduce_older_frame
    if files.is_stream(kind):
        return files.reduce_stream
    if widgets.is_widget(kind):
        return widgets.reduce_widget
    if widgets.is_comm(kind):
        return widgets.reduce_comm
    if top in {"_io", "socket", "ssl"}:
        return files.family_of_io(kind)
    rooms = (named, standard, locks, weakrefs, containers)
    found = next((found for room in rooms if (found := room.of_family(kind)) is not None), None)
    return left_out.reduce_bare if found is containers.reduce_bare and left_out.says_state(kind) else found


def _reduce_array(encoder: Any, array: Any) -> Reduced:
    return histograms.reduce_view(array) or arrays.reduce_array(encoder, array)
