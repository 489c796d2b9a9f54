"""How a kernel calls itself to the pool: by Jupyter's own id, its process, and what it does beside its cells. Pure."""

import re
from typing import Literal

_KERNEL = re.compile(r"(?P<id>.+?)-(?P<process>\d+)(?:-(?P<beside>background|sweep)-\w+)?")

Kind = Literal["front", "background", "sweep"]


def parse_kernel_name(kernel: str) -> tuple[str, Kind]:
    """Return Jupyter's id of a kernel, empty where its name is none of ours, and what it does."""
    match = _KERNEL.fullmatch(kernel)
    if match is None:
        return "", "front"
    beside = match["beside"]
    return match["id"], "background" if beside == "background" else "sweep" if beside == "sweep" else "front"


def is_restarted(earlier: str, kernel: str) -> bool:
    """Tell whether one name is of the same kernel of Jupyter's as another, and of another process: that has ended."""
    one, other = _KERNEL.fullmatch(earlier), _KERNEL.fullmatch(kernel)
    return one is not None and other is not None and one["id"] == other["id"] and one["process"] != other["process"]
