"""How executors are started: whatever that takes for one session, others go on."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_worker.agent.executor_launcher import ExecutorLauncher


def test_a_directory_of_users_that_is_slow_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answers = threading.Event(), threading.Event()

    def find(*_: object, **__: object) -> None:
        asked.set()
        assert answers.wait(10), "the agent waits for it, and does nothing else"
        raise LookupError("there is no such user")

    monkeypatch.setattr("gpu_worker.agent.executor_launcher.find_unix_user", find)
    settings = SimpleNamespace(isolation="unix-user", min_uid=1000, unix_groups=())
    launcher: Any = SimpleNamespace(_ensure_zygote=lambda _: None, _settings=settings, _node="n1")
    launcher._find_user = lambda name: ExecutorLauncher._find_user(launcher, name)
    session: Any = SimpleNamespace(prepare=SimpleNamespace(user="ann", environment=None))

    async def fork_while_another_goes_on() -> None:
        forking = asyncio.create_task(ExecutorLauncher.fork(launcher, session))
        assert await asyncio.to_thread(asked.wait, 10)
        answers.set()
        with pytest.raises(LookupError):
            await forking

    asyncio.run(fork_while_another_goes_on())
