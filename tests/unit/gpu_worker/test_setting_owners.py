"""Each setting has a process that obeys it."""

import pytest

from bulletin.errors import BadConfig
from gpu_worker.config import Pool
from gpu_worker.setting_owners import OF_AGENT, OF_BOTH, OF_BROKER, require_obeyed


def test_each_setting_is_obeyed_by_one_process_or_both() -> None:
    known = [*OF_BROKER, *OF_AGENT, *OF_BOTH]
    assert sorted(known) == sorted(Pool.class_traits(config=True))


def test_what_is_for_both_is_for_each() -> None:
    require_obeyed("broker", ["host", "kernel_port"], "here")
    require_obeyed("agent", ["host", "node_port"], "here")
    with pytest.raises(BadConfig, match=r"Pool\.node_port is a setting that the agent obeys"):
        require_obeyed("broker", ["host", "node_port"], "here")
