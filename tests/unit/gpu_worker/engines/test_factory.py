"""Engines are known by name, and say what they need."""

import pytest
from traitlets.config import Config

from bulletin.errors import BadConfig
from gpu_worker.config import Pool, PoolSettings
from gpu_worker.engines import ENGINES, make_engine
from gpu_worker.engines.scaled_engine import count_gpus


def settings(**pool: object) -> PoolSettings:
    return Pool(config=Config(Pool=pool)).settings()


def test_the_default_engine_is_known() -> None:
    assert settings().engine.name in ENGINES
    make_engine(settings(), [], {})


def test_an_engine_that_is_not_known_is_answered_with_those_that_are() -> None:
    with pytest.raises(Exception, match="kubernetes"):
        settings(engine="kubernetes")


def test_agents_on_other_hosts_need_an_address_of_this_one() -> None:
    with pytest.raises(BadConfig, match=r"Pool\.host"):
        make_engine(settings(engine="slurm"), [], {})
    with pytest.raises(BadConfig, match=r"Pool\.host"):
        make_engine(settings(engine="slurm", host="0.0.0.0"), [], {})
    make_engine(settings(engine="slurm", host="10.0.0.5"), [], {})


def test_the_engine_command_needs_its_commands() -> None:
    with pytest.raises(BadConfig, match=r"CommandAgents\.start"):
        make_engine(settings(engine="command"), [], {})


def test_more_nodes_at_least_than_at_most_is_a_mistake() -> None:
    with pytest.raises(BadConfig, match=r"Scaling\.min_nodes is 3"):
        Pool(config=Config(Scaling={"min_nodes": 3, "max_nodes": 2})).settings()


@pytest.mark.parametrize(
    ("gres", "gpus"), [("", 0), ("gpu", 1), ("gpu:4", 4), ("gpu:a100:2", 2), ("gpu:a:1,gpu:b:2,lscratch:5", 3)]
)
def test_the_gpus_of_a_job_are_the_slots_that_are_expected(gres: str, gpus: int) -> None:
    assert count_gpus(gres) == gpus
