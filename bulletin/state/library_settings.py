"""How a person has set up libraries: options, styles, precisions. Each is asked only where it is imported."""

import importlib
import re
import sys
from collections.abc import Mapping
from typing import Any

from .setting_kind import SettingKind, shell_of_cells

#: What a library with hundreds of options had when it was asked last, and which of them were not at their default.
_seen: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
#: matplotlib's way to the screen, which each side has of its own.
_OF_THIS_SIDE = frozenset({"backend", "backend_fallback", "interactive", "toolbar"})


def _write_printing(numpy: Any, value: Mapping[str, Any]) -> None:
    numpy.set_printoptions(**value)


def _write_errors(numpy: Any, value: Mapping[str, Any]) -> None:
    numpy.seterr(**value)


def _read_options(_: Any) -> dict[str, Any]:
    """Read the options that are not as pandas has them. Asked one by one they would take 10 ms."""
    config: Any = sys.modules.get("pandas._config.config") or importlib.import_module("pandas._config.config")
    seen = _seen.get("options")
    if seen is not None and seen[0] == config._global_config:
        return seen[1]
    found: dict[str, Any] = {}
    for key, option in config._registered_options.items():
        at: Any = config._global_config
        for part in key.split("."):
            at = at[part]
        if key not in config._deprecated_options and at is not option.defval and at != option.defval:
            found[key] = at
    _seen["options"] = _copied(config._global_config), found
    return found


def _copied(options: dict[str, Any]) -> dict[str, Any]:
    """Copy options so that they do not change with the original: the containers in them are copied too."""
    copy: dict[str, Any] = {}
    for key, value in dict.items(options):  # matplotlib's own way would warn
        copy[key] = _copied(value) if isinstance(value, dict) else list(value) if isinstance(value, list) else value
    return copy


def _write_options(pandas: Any, value: Mapping[str, Any]) -> None:
    now = _read_options(pandas)
    for key in now.keys() - value.keys():
        pandas.reset_option(re.escape(key) + "$")
    for key, wanted in value.items():
        if key not in now or now[key] != wanted:
            pandas.set_option(key, wanted)


def _read_style(matplotlib: Any) -> dict[str, Any]:
    seen = _seen.get("style")
    if seen is not None and dict.__eq__(matplotlib.rcParams, seen[0]):
        return seen[1]
    defaults = matplotlib.rcParamsDefault
    found = {
        key: value
        for key, value in dict.items(matplotlib.rcParams)  # its own way would warn, and choose a backend
        if key not in _OF_THIS_SIDE and value != dict.get(defaults, key)
    }
    _seen["style"] = _copied(matplotlib.rcParams), _copied(found)
    return _seen["style"][1]


def _write_style(matplotlib: Any, value: Mapping[str, Any]) -> None:
    for key in _read_style(matplotlib).keys() - value.keys():
        dict.__setitem__(matplotlib.rcParams, key, dict.get(matplotlib.rcParamsDefault, key))
    dict.update(matplotlib.rcParams, value)


def _read_figures(_: Any) -> dict[str, Any]:
    """Read `%config InlineBackend`: in which formats figures are sent.

    IPython keeps it for the first figure if there was none.
    """
    if "matplotlib_inline.config" not in sys.modules and not getattr(shell_of_cells(), "config", {}).get(
        "InlineBackend"
    ):
        return {}
    inline = importlib.import_module("matplotlib_inline.config").InlineBackend
    config = inline.instance(parent=shell_of_cells())
    found = {
        "figure_formats": set(config.figure_formats),  # plain containers, where IPython has some that watch
        "print_figure_kwargs": dict(config.print_figure_kwargs),
        "close_figures": bool(config.close_figures),
    }
    return {} if found == _FIGURES else found


def _write_figures(_: Any, value: Mapping[str, Any]) -> None:
    config = importlib.import_module("matplotlib_inline.config").InlineBackend.instance(parent=shell_of_cells())
    config.shell = shell_of_cells()
    for name, wanted in (value or _FIGURES).items():
        setattr(config, name, wanted)


#: As IPython has it.
_FIGURES = {"figure_formats": {"png"}, "print_figure_kwargs": {"bbox_inches": "tight"}, "close_figures": True}


def _read_text_printer(_: Any) -> dict[str, Any]:
    """Read `%pprint` and `%precision`: how IPython writes values as text."""
    printer = shell_of_cells().display_formatter.formatters["text/plain"]
    return {"pprint": bool(printer.pprint), "float_precision": str(printer.float_precision)}


def _write_text_printer(_: Any, value: Mapping[str, Any]) -> None:
    printer = shell_of_cells().display_formatter.formatters["text/plain"]
    printer.pprint = value["pprint"]
    if printer.float_precision != value["float_precision"]:
        printer.float_precision = value["float_precision"]


def _read_torch(torch: Any) -> dict[str, Any]:
    printing = sys.modules["torch._tensor_str"].PRINT_OPTS
    return {
        "printing": {name: getattr(printing, name) for name in _PRINTING},
        "dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "grad": torch.is_grad_enabled(),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "precision": torch.get_float32_matmul_precision(),
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
    }


def _write_torch(torch: Any, value: Mapping[str, Any]) -> None:
    for name, wanted in value["printing"].items():
        setattr(sys.modules["torch._tensor_str"].PRINT_OPTS, name, wanted)
    torch.set_default_dtype(getattr(torch, value["dtype"]))
    torch.set_grad_enabled(value["grad"])
    is_deterministic, warns_only = value["deterministic"]
    torch.use_deterministic_algorithms(is_deterministic, warn_only=warns_only)
    torch.set_float32_matmul_precision(value["precision"])
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = value["cudnn"]


#: As torch has it.
_OF_TORCH = {
    "printing": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None},
    "dtype": "float32",
    "grad": True,
    "deterministic": (False, False),
    "precision": "highest",
    "cudnn": (False, False),
}
_PRINTING = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")


def _count_hooks(hooks: Any, value: int) -> None:
    """Raise torch's counter of hooks, never lower it: a number given twice would let one hook replace another."""
    handle = hooks.RemovableHandle
    handle.next_id = max(handle.next_id, value)


def _read_jax(jax: Any) -> dict[str, Any]:
    return {name: jax.config.values[name] for name, usual in _OF_JAX.items() if jax.config.values[name] != usual}


def _write_jax(jax: Any, value: Mapping[str, Any]) -> None:
    for name, usual in _OF_JAX.items():
        wanted = value.get(name, usual)
        if jax.config.values[name] != wanted:
            jax.config.update(name, wanted)


#: Options of which it depends what an expression gives, as jax has them.
_OF_JAX = {
    "jax_enable_x64": False,
    "jax_disable_jit": False,
    "jax_debug_nans": False,
    "jax_numpy_rank_promotion": "allow",
    "jax_numpy_dtype_promotion": "standard",
    "jax_default_matmul_precision": None,
    "jax_default_prng_impl": "threefry2x32",
}


def _read_sklearn(sklearn: Any) -> dict[str, Any]:
    usual = sklearn._config._global_config
    return {name: value for name, value in sklearn.get_config().items() if value != usual.get(name)}


def _write_sklearn(sklearn: Any, value: Mapping[str, Any]) -> None:
    sklearn.set_config(**{**sklearn._config._global_config, **value})


def _read_mpmath(mpmath: Any) -> dict[str, Any]:
    return {name: getattr(mpmath.mp, name) for name in _OF_CONTEXT}


def _write_mpmath(mpmath: Any, value: Mapping[str, Any]) -> None:
    for name in _OF_CONTEXT:
        setattr(mpmath.mp, name, value[name])


#: The precision of mpmath in bits, and how it shows numbers, as it has them.
_OF_CONTEXT = {"pretty": False, "trap_complex": False, "prec": 53}


def _read_template(io: Any) -> str:
    return str(io.templates.default)


def _write_template(io: Any, value: str) -> None:
    io.templates.default = value


LIBRARY_KINDS = {
    # before numpy's own printing, which `%precision` sets as well
    "text": SettingKind("IPython.core.interactiveshell", _read_text_printer, _write_text_printer),
    "printing": SettingKind("numpy", lambda numpy: numpy.get_printoptions(), _write_printing),
    "errors": SettingKind("numpy", lambda numpy: numpy.geterr(), _write_errors),
    "torch": SettingKind(
        "torch._tensor_str",
        lambda _: _read_torch(sys.modules["torch"]),
        lambda _, value: _write_torch(importlib.import_module("torch"), value),
        default=_OF_TORCH,
    ),
    "hooks": SettingKind("torch.utils.hooks", lambda hooks: hooks.RemovableHandle.next_id, _count_hooks),
    "options": SettingKind("pandas", _read_options, _write_options, default={}),
    "style": SettingKind("matplotlib", _read_style, _write_style, default={}),
    "figures": SettingKind("IPython.core.interactiveshell", _read_figures, _write_figures, default={}),
    "jax": SettingKind("jax", _read_jax, _write_jax, default={}),
    "sklearn": SettingKind("sklearn", _read_sklearn, _write_sklearn, default={}),
    "mpmath": SettingKind("mpmath", _read_mpmath, _write_mpmath, default=_OF_CONTEXT),
    "plotly": SettingKind("plotly.io", _read_template, _write_template, default="plotly"),
}
