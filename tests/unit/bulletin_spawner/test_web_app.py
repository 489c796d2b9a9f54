"""What the page reads of somebody whom it does not know yet."""

import asyncio
import logging
from pathlib import Path

import pytest

from bulletin_spawner.ports import find_free_ports
from bulletin_spawner.service.broker_client import BrokerClient
from bulletin_spawner.service.page_login import MOST_ANSWERS, MOST_LOGINS, MOST_OF_TOKEN, PageLogin
from bulletin_spawner.service.web_app import (
    LoginCallback,
    PoolPage,
    ServiceSettings,
    StatusApi,
    listen,
    make_app,
)

#: Each has a thread with an event loop, which JupyterHub never closes.
_KEPT: list[PageLogin] = []


def _know_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the page have a hub, which does not answer."""
    monkeypatch.setenv("JUPYTERHUB_API_URL", "http://127.0.0.1:1/hub/api")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of-the-service")
    monkeypatch.setenv("JUPYTERHUB_CLIENT_ID", "service-bulletin")
    PageLogin.clear_instance()
    _KEPT.append(PageLogin.instance())


class _Visitor:
    """Somebody with one cookie, whatever it is called."""

    def __init__(self, cookie: str) -> None:
        self._cookie = cookie

    def get_cookie(self, name: str, default: str) -> str:
        del name, default
        return self._cookie


def _answer(head: bytes, folder: Path) -> bytes:
    """What the page says to these bytes before it hangs up."""
    (port,) = find_free_ports([0])

    async def send() -> bytes:
        broker = BrokerClient(folder, "")
        app = make_app(ServiceSettings(url=f"http://127.0.0.1:{port}", prefix="/pool/"), broker)
        server = listen(app, port, "127.0.0.1")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(head)
            async with asyncio.timeout(30):
                return await reader.read()  # until the page hangs up, though its client does not
        except ConnectionResetError:  # with part of it unread
            return b""
        finally:
            writer.close()
            server.stop()
            await server.close_all_connections()
            broker.close()

    return asyncio.run(send())


def test_without_a_pool_its_health_is_that_and_nobody_reads_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _know_a_hub(monkeypatch)
    ask = "GET /pool/{} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"
    health = _answer(ask.format("health").encode(), tmp_path)
    assert health.startswith(b"HTTP/1.1 503")
    assert health.endswith(b'{"status":"no-pool"}')
    metrics = _answer(ask.format("metrics").encode(), tmp_path)
    assert metrics.startswith(b"HTTP/1.1 403")
    assert b"read:metrics" in metrics


@pytest.mark.parametrize("length", [70_000, 100_000_000])
def test_a_body_that_is_too_long_is_refused_before_any_of_it_comes(length: int, tmp_path: Path) -> None:
    head = f"POST /pool/ HTTP/1.1\r\nHost: hub\r\nContent-Length: {length}\r\n\r\n"
    assert _answer(head.encode(), tmp_path).startswith(b"HTTP/1.1 400")


def test_what_is_too_long_is_not_read(tmp_path: Path) -> None:
    head = b"POST /pool/ HTTP/1.1\r\nHost: hub\r\nX: " + b"x" * 200_000 + b"\r\n\r\n"
    answer = _answer(head, tmp_path)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))


def test_connections_that_say_nothing_keep_nobody_out_and_take_no_descriptors(tmp_path: Path) -> None:
    (port,) = find_free_ports([0])

    async def main() -> bytes:
        broker = BrokerClient(tmp_path, "")
        app = make_app(ServiceSettings(url=f"http://127.0.0.1:{port}", prefix="/pool/"), broker)
        server = listen(app, port, "127.0.0.1", most_connections=10)
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(30):
                for oldest, _ in silent[:31]:
                    assert await oldest.read() == b"", "they are hung up on"
                writer.write(b"GET /pool/static/pool.css HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
                return await reader.read()
        finally:
            for one in (writer, *(one for _, one in silent)):
                one.close()
            server.stop()
            await server.close_all_connections()
            broker.close()

    assert asyncio.run(main()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "path", ["../web_app.py", "%2e%2e/web_app.py", "..%2fweb_app.py", "//etc/passwd", "%2fetc/passwd", "x%00.css", ""]
)
def test_no_file_is_served_but_script_and_style(path: str, tmp_path: Path) -> None:
    head = f"GET /pool/static/{path} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"
    assert _answer(head.encode(), tmp_path).startswith((b"HTTP/1.1 403", b"HTTP/1.1 404", b"HTTP/1.1 400"))


@pytest.mark.parametrize("path", ["static/pool.css", "static/none.css", "nowhere", "oauth_callback?error=none"])
def test_whatever_it_sends_no_browser_takes_for_something_else(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _know_a_hub(monkeypatch)
    head = f"GET /pool/{path} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"
    answer = _answer(head.encode(), tmp_path)
    assert b"X-Content-Type-Options: nosniff" in answer
    assert b"Content-Security-Policy: default-src 'none'" in answer


def test_the_code_of_a_login_is_not_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _know_a_hub(monkeypatch)
    caplog.set_level(logging.INFO)
    head = b"GET /pool/oauth_callback?code=a-secret&state=b HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"
    assert _answer(head, tmp_path).startswith(b"HTTP/1.1 4")
    assert "GET /pool/oauth_callback" in caplog.text
    assert "secret" not in caplog.text


def test_who_cannot_be_asked_of_the_hub_reads_that_and_does_not_lose_their_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _know_a_hub(monkeypatch)
    ask = "GET /pool/api/v1/now HTTP/1.1\r\nHost: hub\r\nAuthorization: token t\r\nConnection: close\r\n\r\n"
    said = _answer(ask.encode(), tmp_path)
    assert said.startswith(b"HTTP/1.1 503")
    assert b'{"code":"no-hub","sentence":"The hub does not say who you are: it may be starting again.' in said
    assert b'"is_logged_out":false' in said


@pytest.mark.parametrize("page", ["", "me", "quotas"])
def test_a_page_for_which_the_hub_cannot_be_asked_says_so_and_looks_again(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _know_a_hub(monkeypatch)
    ask = f"GET /pool/{page} HTTP/1.1\r\nHost: hub\r\nAuthorization: token t\r\nConnection: close\r\n\r\n"
    said = _answer(ask.encode(), tmp_path)
    assert said.startswith(b"HTTP/1.1 503")
    assert b"<h1>The hub does not answer</h1>" in said
    assert b"This page looks again by itself" in said
    assert b'<script src="/pool/static/again.js" defer>' in said
    assert b"127.0.0.1" not in said, "where the hub is, is nobody's business"


def test_a_login_that_breaks_off_says_how_to_begin_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _know_a_hub(monkeypatch)
    ask = b"GET /pool/oauth_callback?code=a&state=b HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"
    said = _answer(ask, tmp_path)
    assert b"<h1>The login did not come to its end</h1>" in said
    assert b'<a href="/pool/">To the pages of the pool</a>' in said


def test_a_login_that_begins_is_remembered_without_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _know_a_hub(monkeypatch)
    login = PageLogin.instance()
    state = login.generate_state(f"/pool/?{'x' * 30_000}", code_verifier="y")
    assert len(str(login._oauth_states[state])) < 1_000
    assert all(page.hub_auth_class is PageLogin for page in (PoolPage, StatusApi, LoginCallback))


@pytest.mark.parametrize(
    ("asked", "back"),
    [
        ("/pool/project?project=p%2Fq+r&by=week", "/pool/project?project=p%2Fq+r&by=week"),
        ("/pool/project?next=https://evil.example", "/pool/project"),
        (f"/pool/project?project={'x' * 200}", "/pool/project"),
        ("/pool/me", "/pool/me"),
        ("//evil.example/pool/", None),
        ("https://evil.example/", None),
        ("/\\evil.example", None),
        (f"/pool/{'x' * 200}", None),
        (None, None),
    ],
)
def test_a_login_leads_back_to_a_path_of_the_service_and_nowhere_else(
    asked: str | None, back: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _know_a_hub(monkeypatch)
    login = PageLogin.instance()
    assert login.get_next_url(login.generate_state(asked, code_verifier="y")) == (back or login.base_url)


def test_of_logins_that_nobody_goes_on_with_so_many_are_remembered_and_the_newest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _know_a_hub(monkeypatch)
    login = PageLogin.instance()
    states = [login.generate_state("/pool/", code_verifier=str(number)) for number in range(MOST_LOGINS + 5)]
    assert len(login._oauth_states) == MOST_LOGINS
    assert (login.get_code_verifier(states[4]), login.get_code_verifier(states[5])) == (None, "5")
    assert login.get_code_verifier(states[-1]) == str(MOST_LOGINS + 4)


def test_what_the_hub_says_of_a_token_is_kept_by_no_cookie_but_one_that_is_like_the_hubs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _know_a_hub(monkeypatch)
    read = PageLogin.instance().get_session_id
    assert read(_Visitor("x" * 30_000)) == ""
    assert read(_Visitor("a" * 32)) == "a" * 32


def test_of_what_the_hub_says_of_tokens_so_much_is_kept_whatever_is_shown_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _know_a_hub(monkeypatch)
    kept = PageLogin.instance().cache
    for number in range(100):
        kept[f"token:{number}:eve"] = {"name": "eve", "kind": "user", "scopes": [], "servers": {"": "x" * 10**6}}
    assert len(kept) == MOST_OF_TOKEN
    assert kept["token:99:eve"] == {"name": "eve", "kind": "user", "scopes": []}
    for number in range(MOST_ANSWERS + 5):
        kept[f"token::guess-{number}"] = None
    assert len(kept) == MOST_ANSWERS
    assert kept["token:99:eve"] is not None, "guesses push out guesses"


@pytest.mark.parametrize(
    "path",
    ["api/v1/now", "api/status", "metrics", "", "oauth_callback?error=none", "oauth_callback?code=a&state=b"],
)
def test_while_the_hub_takes_its_time_to_say_who_one_is_others_are_answered(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, hub_port = find_free_ports([0, 0])
    monkeypatch.setenv("JUPYTERHUB_API_URL", f"http://127.0.0.1:{hub_port}/hub/api")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of-the-service")
    monkeypatch.setenv("JUPYTERHUB_CLIENT_ID", "service-bulletin")
    PageLogin.clear_instance()
    _KEPT.append(PageLogin.instance())

    async def ask(of: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET /pool/{of} HTTP/1.1\r\nHost: hub\r\nAuthorization: token of-ada\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        try:
            return await reader.read()
        finally:
            writer.close()

    async def play() -> tuple[bytes, bytes]:
        is_asked, may_answer = asyncio.Event(), asyncio.Event()

        async def be_a_hub(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            is_asked.set()
            await may_answer.wait()
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            await writer.drain()
            writer.close()

        hub = await asyncio.start_server(be_a_hub, "127.0.0.1", hub_port)
        broker = BrokerClient(tmp_path, "")
        server = listen(
            make_app(ServiceSettings(url=f"http://127.0.0.1:{port}", prefix="/pool/"), broker), port, "127.0.0.1"
        )
        try:
            async with asyncio.timeout(60):
                slow = asyncio.create_task(ask(path))
                await is_asked.wait()
                meanwhile = await ask("health")
                assert not slow.done()
                may_answer.set()
                return meanwhile, await slow
        finally:
            server.stop()
            await server.close_all_connections()
            hub.close()
            broker.close()

    meanwhile, slow = asyncio.run(play())
    assert meanwhile.startswith(b"HTTP/1.1 503")
    assert not slow.startswith(b"HTTP/1.1 200")


def test_of_many_requests_that_show_the_same_token_at_once_the_hub_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (port,) = find_free_ports([0])
    _know_a_hub(monkeypatch)
    login = PageLogin.instance()
    login.api_url = f"http://127.0.0.1:{port}/hub/api"
    asked: list[bytes] = []

    async def be_a_hub(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        said = b'{"kind": "user", "name": "ada"}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(said), said))
        await writer.drain()
        writer.close()

    async def play() -> list[dict[str, str]]:
        async with await asyncio.start_server(be_a_hub, "127.0.0.1", port), asyncio.timeout(60):
            tokens = ["of-ada"] * 30 + ["another"]
            return list(await asyncio.gather(*(login.user_for_token(token, sync=False) for token in tokens)))

    assert [one["name"] for one in asyncio.run(play())] == ["ada"] * 31
    assert len(asked) == 2
