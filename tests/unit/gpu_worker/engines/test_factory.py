"""Engines are known by name."""

import pytest

from bulletin.errors import BadConfig
from gpu_worker.config import Pool
from gpu_worker.engines import DEFAULT_ENGINE, make_engine


def test_the_default_engine_is_known() -> None:
    settings = Pool().settings()
    assert type(make_engine(settings, [])) is type(make_engine(settings, [], DEFAULT_ENGINE))


def test_an_engine_that_is_not_known_is_answered_with_those_that_are() -> None:
    with pytest.raises(BadConfig, match=f"no engine 'kubernetes'.*{DEFAULT_ENGINE}"):
        make_engine(Pool().settings(), [], "kubernetes")
