"""Who may ask what of the REST API, by a real hub's real tokens: each role at each endpoint."""

import csv
import io
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from bulletin_spawner.service.all_endpoints import ALL_ENDPOINTS
from bulletin_spawner.service.quota_endpoints import QUOTA_ENDPOINTS
from gpu_worker.broker.ledger import Ledger
from tests.acceptance.hub import Hub
from tests.acceptance.played_pool import PlayedPool, now_ms, played_pool
from tests.waiting import until

#: Those of *Quotas* are in test_quotas_page.py.
ALL = tuple(one for one in ALL_ENDPOINTS if one not in QUOTA_ENDPOINTS)
#: Nobody; carol, who may not use the pool; eve of another project; ada of ml; liz, its lead; an admin.
ROLES = ("nobody", "carol", "eve", "ada", "liz", "admin")
WHO_MAY: dict[str, tuple[int, int, int, int, int, int]] = {
    "now": (403, 403, 200, 200, 200, 200),
    "me": (403, 403, 200, 200, 200, 200),
    "receipts": (403, 403, 200, 200, 200, 200),
    "cells": (403, 403, 200, 200, 200, 200),
    "projects": (403, 403, 200, 200, 200, 200),
    "project": (403, 403, 403, 200, 200, 200),
    "cancel": (403, 403, 404, 404, 404, 404),
    "hold": (403, 403, 404, 404, 404, 404),
    "release": (403, 403, 404, 404, 404, 404),
    "first": (403, 403, 403, 403, 404, 404),
    "boost": (403, 403, 403, 403, 200, 200),
    "unboost": (403, 403, 403, 403, 404, 404),
    "allowances": (403, 403, 200, 200, 200, 200),
    "requestAllowance": (403, 403, 403, 200, 200, 403),
    "grantAllowance": (403, 403, 403, 403, 404, 404),
    "declineAllowance": (403, 403, 404, 404, 404, 404),
    "drain": (403, 403, 403, 403, 403, 409),
    "undrain": (403, 403, 403, 403, 403, 409),
    "usage": (403, 403, 403, 403, 403, 200),
    "announcement": (403, 403, 200, 200, 200, 200),
    "announce": (403, 403, 403, 403, 403, 200),
    "unannounce": (403, 403, 403, 403, 403, 200),
}
#: What the paths and bodies of the table name: a project, a user of it, and a request and a node that there are not.
NAMED = {"id": "l-there-is-none", "project": "ml", "user": "bob", "node": "gpu99"}
BODIES = {
    "announce": {"sentence": "The exam is at ten.", "for_ms": 3_600_000},
    "boost": {"user": "ada", "for_ms": 3_600_000},
    "requestAllowance": {"project": "ml", "walltime_ms": 14_400_000, "why": "of ada"},
}


#: And what is asked behind a path that has no answer without.
QUERIES = {"usage": "?since_ms=0&until_ms=86400000"}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, PlayedPool]]:
    with played_pool(tmp_path_factory.mktemp("api")) as (hub, pool):
        pool.add_node("gpu01", 4)
        for user, label in (("ada", "of ada"), ("bob", "of bob"), ("vic", "of vic"), ("eve", "of eve")):
            pool.ask(user, label)
        for user, label in (("bob", "bob waits"), ("eve", "eve waits"), ("ada", "ada waits")):
            pool.ask(user, label)
        yield hub, pool


@pytest.fixture(scope="module")
def hub(played: tuple[Hub, PlayedPool]) -> Hub:
    return played[0]


@pytest.fixture(scope="module")
def tokens(hub: Hub) -> dict[str, str]:
    """A token of each role, by the hub's own API."""
    hub.make_user("admin")
    return {role: hub.token_of(role) for role in ROLES if role != "nobody"}


def call(
    hub: Hub, path: str, token: str | None, method: str = "GET", body: object = None
) -> tuple[int, dict[str, Any]]:
    """The status of an answer, and what it says."""
    request = urllib.request.Request(
        f"{hub.address}/services/bulletin/api/v1{path}",
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Authorization": f"token {token}"} if token else {},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_the_table_has_every_endpoint() -> None:
    assert set(WHO_MAY) == {one.name for one in ALL}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("endpoint", ALL, ids=lambda one: one.name)
def test_each_role_at_each_endpoint(hub: Hub, tokens: dict[str, str], endpoint: Any, role: str) -> None:
    path = endpoint.path.format(**NAMED)
    body = BODIES.get(endpoint.name, {}) if endpoint.body is not None else None
    path += QUERIES.get(endpoint.name, "")
    status, said = call(hub, path, tokens.get(role), endpoint.method, body)
    assert status == WHO_MAY[endpoint.name][ROLES.index(role)], said
    if status >= 400:
        assert set(said) - {"is_logged_out", "is_session_over"} == {"code", "sentence"}
        assert said.get("is_logged_out", False) or role != "nobody"


def everything(hub: Hub, token: str) -> str:
    """All that a token can read: every endpoint that only reads, and every project."""
    paths = [one.path for one in ALL if one.method == "GET" and "{" not in one.path]
    paths += [f"/projects/{project}" for project in ("ml", "vision", "guests", "default")]
    return "\n".join(json.dumps(call(hub, path, token)[1]) for path in paths if "{" not in path)


@pytest.fixture(scope="module", autouse=True)
def readings(hub: Hub, tokens: dict[str, str]) -> dict[str, str]:
    """All that each role can read of the pool as it was made: before any test has changed something in it."""
    return {role: everything(hub, token) for role, token in tokens.items() if role != "carol"}


@pytest.mark.parametrize(
    ("role", "seen", "unseen"),
    [
        ("ada", ("of ada", "ada waits"), ('"bob"', "of bob", '"vic"', "of vic", '"eve"', "of eve", '"vision"')),
        ("eve", ("of eve", "eve waits"), ('"ada"', "of ada", '"bob"', "of bob", '"vic"', "of vic", '"vision"')),
        ("liz", ("of ada", "of bob", "of vic", "bob waits"), ('"eve"', "of eve", "eve waits", '"guests"')),
        ("admin", ("of ada", "of bob", "of eve", "eve waits"), ()),
    ],
)
def test_of_all_that_can_be_read_nobody_reads_what_is_anothers(
    readings: dict[str, str], role: str, seen: tuple[str, ...], unseen: tuple[str, ...]
) -> None:
    said = readings[role]
    assert [word for word in seen if word not in said] == []
    assert [word for word in unseen if word in said] == []


def waiting(hub: Hub, token: str, label: str) -> dict[str, Any]:
    """A request in line, as this token sees it."""
    found: dict[str, Any] = next(one for one in call(hub, "/now", token)[1]["queue"] if one["label"] == label)
    return found


def test_a_lead_holds_a_members_request_and_the_member_reads_it_and_cannot_release_it(
    hub: Hub, tokens: dict[str, str]
) -> None:
    name = waiting(hub, tokens["liz"], "bob waits")["lease"]
    bobs = hub.token_of("bob")
    assert call(hub, f"/cells/{name}/hold", tokens["liz"], "POST", {"why": "until tonight"})[0] == 200
    assert waiting(hub, bobs, "bob waits")["reason"] == "held by the lead of your project: until tonight"
    status, said = call(hub, f"/cells/{name}/release", bobs, "POST", {})
    assert (status, "a lead or an admin" in said["sentence"]) == (403, True)
    assert call(hub, f"/cells/{name}/release", tokens["liz"], "POST", {})[0] == 200
    assert call(hub, f"/cells/{name}/hold", tokens["eve"], "POST", {})[0] == 404, "of others she knows nothing"


def busy(hub: Hub, token: str) -> list[str]:
    """The leases of this user in which a cell runs."""
    return [one["lease"] for one in call(hub, "/me", token)[1]["running"] if one["state"] == "busy"]


def test_who_cancels_a_cell_stops_it_and_it_is_gone_from_their_page(
    played: tuple[Hub, PlayedPool], tokens: dict[str, str]
) -> None:
    hub, _ = played
    [running] = call(hub, "/me", tokens["eve"])[1]["running"]
    assert call(hub, f"/cells/{running['lease']}/cancel", tokens["ada"], "POST")[0] == 404
    assert call(hub, f"/cells/{running['lease']}/cancel", tokens["eve"], "POST")[0] == 200
    until(lambda: running["lease"] not in busy(hub, tokens["eve"]), "the cell to end")


def test_an_admin_reads_who_used_how_much_by_label_as_the_command_writes_it(hub: Hub, tokens: dict[str, str]) -> None:
    until_ms = now_ms()
    times = f"since_ms={until_ms - 30 * 86_400_000}&until_ms={until_ms}"
    status, said = call(hub, f"/usage?by=label&{times}", tokens["admin"])
    rows = {row["of"]: row for row in csv.DictReader(io.StringIO(said["csv"]))}
    assert (status, said["has_more"]) == (200, False)
    assert {"resnet-50", "resnet-101", "ablation", "segmentation", ""} <= set(rows)
    assert int(rows["segmentation"]["cells"]) == 21
    by_project = list(csv.DictReader(io.StringIO(call(hub, f"/usage?by=project&{times}", tokens["admin"])[1]["csv"])))
    used = {row["of"]: int(row["gpu_ms"]) for row in by_project}
    assert used["ml"] > used["vision"] == int(rows["segmentation"]["gpu_ms"]), "ml has what is in it, too"
    for wrong in ("since_ms=5&until_ms=5", "since_ms=0&until_ms=99999999999", f"by=label;--&{times}"):
        status, said = call(hub, f"/usage?{wrong}", tokens["admin"])
        assert (status, said["code"]) == (400, "bad-request"), wrong


def of_node(hub: Hub, token: str, node: str) -> tuple[bool, bool]:
    """Whether a node is drained, and whether it is to be, as *Now* says."""
    [one] = [one for one in call(hub, "/now", token)[1]["nodes"] if one["node"] == node]
    return one["is_drained"], one["drains_in_ms"] is not None


def test_an_admin_drains_a_node_for_later_and_now_and_takes_it_back_and_the_ledger_says_who_and_why(
    played: tuple[Hub, PlayedPool], tokens: dict[str, str]
) -> None:
    hub, pool = played
    path, token = "/nodes/gpu01/drain", tokens["admin"]
    status, said = call(hub, path, token, "POST", {"in_ms": 7_200_000, "why": "a new\x1b[2J disk"})
    assert (status, said["is_drained"], said["in_ms"]) == (200, True, 7_200_000)
    sentence = "gpu01 is drained in 2 h: until then it is given only cells that are over by then."
    assert said["sentence"] == sentence
    assert of_node(hub, tokens["ada"], "gpu01") == (False, True)
    assert call(hub, path, token, "DELETE")[1]["sentence"] == "gpu01 is given cells again."
    status, said = call(hub, path, token, "POST", {})
    assert said["sentence"].startswith(f"gpu01 is given nothing more; {said['cells']} cell")
    assert of_node(hub, tokens["ada"], "gpu01") == (True, False)
    status, said = call(hub, path, token, "POST", {"in_ms": 60_000})
    assert (status, "is drained already" in said["sentence"]) == (409, True)
    assert call(hub, f"{path}?why=it%20is%20there", token, "DELETE")[0] == 200
    assert of_node(hub, tokens["ada"], "gpu01") == (False, False)
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}") as ledger:
        notes = [(one["by"], one["is_drained"], one["why"]) for one in ledger.event_payloads("node-drained")]
    assert notes == [
        ("admin", True, "a new [2J disk"),
        ("admin", False, ""),
        ("admin", True, ""),
        ("admin", False, "it is there"),
    ]


def test_what_is_sent_and_cannot_be_read_is_said(hub: Hub, tokens: dict[str, str]) -> None:
    for path, method, body in (
        ("/projects/ml?stretch=year", "GET", None),
        ("/projects/ml?count=100000", "GET", None),
        ("/now?whose=bob", "GET", None),
        ("/projects/ml/boosts", "POST", {"user": "ada", "for_ms": -1}),
        ("/projects/ml/boosts", "POST", {"user": ["ada"], "for_ms": 60_000}),
        (f"/cells/{'x' * 300}/cancel", "POST", None),
    ):
        status, said = call(hub, path, tokens["liz"], method, body)
        assert (status, said["code"]) == (400, "bad-request"), path
    assert call(hub, "/nothing", tokens["ada"])[0] == 404
    assert call(hub, "/now", tokens["ada"], "DELETE")[0] == 405


def test_a_notebook_servers_token_reads_the_groups_of_its_user_too(hub: Hub) -> None:
    scopes = ["access:services!service=bulletin"]  # as a server's token has it: none that shows groups
    token = hub.api("POST", "/users/ada/tokens", {"note": "like a server's", "scopes": scopes})["token"]
    status, said = call(hub, "/projects", token)
    assert (status, [one["project"] for one in said["projects"]]) == (200, ["ml"])
