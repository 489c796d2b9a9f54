"""Starts the real zygote, forks real executors, and speaks the agent's side of the pipe to them."""

from collections.abc import Iterator

import pytest

from tests.conformance.agent_side import Agent, Session
from tests.other_users import in_mount_namespace, with_readable_python


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    """An agent's side of one zygote, which has numpy imported."""
    agent = Agent(preload="numpy,matplotlib,this_is_not_installed")
    try:
        yield agent
    finally:
        agent.close()


@pytest.fixture(scope="module")
def agent_of_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent's side of a zygote whose Python all users may read, also where that lies in root's own folder."""
    agent = Agent(under=in_mount_namespace(with_readable_python(tmp_path_factory.mktemp("python"))))
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
