"""The harness of the integration tests, and where figures go."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import open_notebook, start_pool

__all__ = ["figure", "open_notebook", "start_pool"]


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str, float, str], None]:
    """Tell a measurement: one JSON line, in the file that the kit reads or else on standard output."""

    def tell(name: str, value: float, unit: str) -> None:
        line = json.dumps({"figure": name, "value": round(value, 3), "unit": unit, "test": request.node.name})
        place = os.environ.get("GPU_SUITE_FIGURES")
        if place is None:
            print(line)
        else:
            with Path(place).open("a") as file:
                file.write(line + "\n")

    return tell
