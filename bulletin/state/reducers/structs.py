"""Classes and coders of msgspec: only its own metaclass makes such a class, of its fields and of how they are coded."""

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.inplace import fill_dict
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .classes import find_class, make_class, note_class, quiet, reduce_class
from .containers import instance_dict

#: How the instances of a class are made and coded, as its configuration names it, and as a class statement does.
_OPTIONS = (
    "array_like", "cache_hash", "dict", "eq", "forbid_unknown_fields", "frozen", "gc", "omit_defaults", "order",
    "repr_omit_defaults", "tag_field", "weakref",
)  # fmt: skip
#: What coders were made with, if they have it.
_OF_CODERS = (
    "enc_hook",
    "decimal_format",
    "uuid_format",
    "order",
    "type",
    "dec_hook",
    "float_hook",
    "ext_hook",
    "strict",
)
#: What a class must have from the beginning.
_EARLY = ("__orig_bases__", "__parameters__")
_CODERS = {(module, name) for module in ("msgspec.json", "msgspec.msgpack") for name in ("Encoder", "Decoder")}


def is_metaclass(kind: type) -> bool:
    """Tell whether a type is that of msgspec's classes."""
    core: Any = sys.modules.get("msgspec._core")
    return hasattr(core, "StructMeta") and issubclass(kind, core.StructMeta)


def reduce_struct_class(encoder: Encoding, cls: Any) -> Reduced:
    """Reduce a class as any other, but to what its metaclass makes it of: its own fields and its configuration."""
    reduced = reduce_class(encoder, cls)
    if reduced is NotImplemented or reduced[0] is not make_class:
        return reduced
    _, args, *rest = reduced
    _, uid, metaclass, name, bases, module, *_ = args
    early = {name: vars(cls)[name] for name in _EARLY if name in vars(cls)}
    own = [name for name in vars(cls).get("__annotations__", {}) if name in cls.__struct_fields__]
    made_of = (early, "__post_init__" in vars(cls), own, _defaults_of(cls, own), _options_of(cls, own))
    return make_struct_class, (RECEIVER, uid, metaclass, name, bases, module, cls.__qualname__, *made_of), *rest


def _defaults_of(cls: Any, own: Sequence[str]) -> dict[str, tuple[bool, Any]]:
    """Return the default of each own field that has one: True and what makes it, or False and the value itself."""
    core: Any = sys.modules["msgspec._core"]
    defaults = dict(zip(reversed(cls.__struct_fields__), reversed(cls.__struct_defaults__), strict=False))
    found: dict[str, tuple[bool, Any]] = {}
    for name in own:
        default = defaults.get(name, core.NODEFAULT)
        if type(default) is core.Factory:
            found[name] = True, default.factory
        elif default is not core.NODEFAULT:
            found[name] = False, default
    return found


def _options_of(cls: Any, own: Sequence[str]) -> dict[str, Any]:
    config = cls.__struct_config__
    options = {name: getattr(config, name) for name in _OPTIONS if hasattr(config, name)}
    options["tag"] = False if config.tag is None else config.tag == cls.__name__ or config.tag
    options["kw_only"] = bool(own) and not any(name in cls.__match_args__ for name in own)
    options["rename"] = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
    return options


def make_struct_class(
    transaction: LoadTransaction,
    uid: str,
    metaclass: Any,
    name: str,
    bases: tuple[type, ...],
    module: str | None,
    qualname: str,
    early: dict[str, Any],
    has_check: bool,
    fields: Sequence[str],
    defaults: dict[str, tuple[bool, Any]],
    options: dict[str, Any],
) -> type:
    """Return the receiving side's class of that id; make one, without its methods, where there is none."""
    found = find_class(transaction, uid)
    if found is not None:
        return found
    msgspec: Any = importlib.import_module("msgspec")
    body: dict[str, Any] = {**early, "__module__": module, "__annotations__": dict.fromkeys(fields, object)}
    if has_check:
        body["__post_init__"] = _check  # the metaclass keeps what it finds here, whatever the class has later
    for field, (is_factory, default) in defaults.items():
        body[field] = msgspec.field(default_factory=default) if is_factory else default
    with quiet(bases):
        cls: type = metaclass(name, bases, body, **options)
    note_class(transaction, uid, cls, qualname)
    return cls


def _check(made: Any) -> None:
    type(made).__post_init__(made)


def is_struct(kind: type) -> bool:
    """Tell whether a type is one of msgspec's classes, whose instances take their values when they are made."""
    return is_metaclass(type(kind)) and kind.__reduce__ is sys.modules["msgspec"].Struct.__reduce__


def reduce_struct(_: Encoding, value: Any) -> Reduced:
    """Reduce an instance to the values of its fields: those of a frozen one are there when it is made, for its hash."""
    kind = type(value)
    values = [(name, getattr(value, name)) for name in kind.__struct_fields__ if hasattr(value, name)]
    if kind.__struct_config__.frozen:
        return make_struct, (RECEIVER, kind, values), (RECEIVER, (), instance_dict(value)), None, None, fill_struct
    return make_struct, (RECEIVER, kind, ()), (RECEIVER, values, instance_dict(value)), None, None, fill_struct


def make_struct(transaction: LoadTransaction, kind: Any, values: Sequence[tuple[str, Any]]) -> Any:
    """Return the existing instance if it can take its values; else one that nobody has checked yet, with these."""
    old = transaction.take_existing()
    if type(old) is kind and not kind.__struct_config__.frozen:
        return old
    made = _blank(kind)
    for name, held in values:
        sys.modules["msgspec"].structs.force_setattr(made, name, held)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def _blank(kind: Any) -> Any:
    """Make an instance without asking the notebook's own code, which did so when the value was made."""
    nothing = dict.fromkeys(kind.__struct_fields__)
    if not hasattr(kind, "__post_init__"):
        return kind(**nothing)
    with quiet((kind,)):
        unchecked = type(kind)(kind.__name__, (kind,), {"__post_init__": lambda _: None, "__module__": __name__})
    made = unchecked(**nothing)
    vars(object)["__class__"].__set__(made, kind)
    return made


def fill_struct(value: Any, state: tuple[LoadTransaction, Sequence[tuple[str, Any]], dict[str, Any] | None]) -> None:
    """Give an instance its values and, where it has a dict, its attributes, undoably."""
    transaction, values, attributes = state
    put: Any = sys.modules["msgspec"].structs.force_setattr
    for name, held in values:
        if hasattr(value, name):
            transaction.undoable(put, value, name, getattr(value, name))
        put(value, name, held)
    own = instance_dict(value)
    if own is not None and attributes is not None:
        transaction.undoable(fill_dict, own, dict(own))
        fill_dict(own, attributes)


def is_coder(kind: type) -> bool:
    """Tell whether a type is what encodes or decodes for msgspec."""
    return (kind.__module__, kind.__name__) in _CODERS


def reduce_coder(_: Encoding, coder: Any) -> Reduced:
    """Reduce a coder to what it was made with."""
    return make_coder, (
        RECEIVER,
        type(coder),
        {name: getattr(coder, name) for name in _OF_CODERS if hasattr(coder, name)},
    )


def make_coder(transaction: LoadTransaction, kind: Any, made_with: dict[str, Any]) -> Any:
    """Return the existing coder if it was made with the same; else a new one."""
    old = transaction.take_existing()
    if type(old) is kind and all(
        getattr(old, name) is held or getattr(old, name) == held for name, held in made_with.items()
    ):
        return old
    made = kind(**made_with)
    if old is not None:
        transaction.replaced.append((old, made))
    return made
