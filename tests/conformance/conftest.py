"""Starts the real zygote, forks real executors, and speaks the agent's side of the pipe to them."""

from collections.abc import Iterator

import pytest

from tests.conformance.agent_side import Agent, Session


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    """An agent's side of one zygote, which has numpy imported."""
    agent = Agent(preload="numpy,matplotlib,this_is_not_installed")
    try:
        yield agent
    finally:
        agent.close()


@pytest.fixture
def session(agent: Agent) -> Iterator[Session]:
    """A fresh executor."""
    session = agent.fork()
    try:
        yield session
    finally:
        session.close()
