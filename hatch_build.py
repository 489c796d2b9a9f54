"""What a wheel gets beside the packages: the extension of JupyterLab, where it has been built (`make.py lab`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = Path("bulletin_lab") / "labextension"
THERE = "share/jupyter/labextensions/@bulletin/lab"


class LabExtensionHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds it as data files. An environment where Bulletin is edited has a link to the folder instead, by make.py."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name each file and where it is to go."""
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        for file in sorted((root / BUILT).rglob("*")):
            if file.is_file() and not file.name.startswith("."):
                build_data["shared_data"][str(file)] = f"{THERE}/{file.relative_to(root / BUILT)}"
