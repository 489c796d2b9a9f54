"""What the pool's page says, and whose names it leaves out."""

from pathlib import Path

import msgspec
from tornado.template import Loader

import bulletin_spawner.service
from bulletin.codes import CellOutcome
from bulletin.ids import CellId, ProjectId, SlotId, UserName
from bulletin.picture_sight import SOMEONE, hide_others
from bulletin.wire.messages import AbsentNode, CellPicture, Picture, SlotPicture, WaitingPicture
from bulletin_spawner.service.page_shell import PAGES
from bulletin_spawner.service.pages import describe_page

PICTURE = Picture(
    slots=(
        SlotPicture(
            node="n1", slot=SlotId("g0"), name="A100", state="busy", user=UserName("ada"), memory_bytes=40 * 10**9
        ),
        SlotPicture(node="n1", slot=SlotId("g1"), name="A100", state="hot", user=UserName("bob")),
        SlotPicture(node="n2", slot=SlotId("g2"), name="A100", state="free"),
    ),
    waiting=(
        WaitingPicture(
            position=2, user=UserName("bob"), qos="batch", gpus=2, reason="all 3 GPUs are busy", waited_ms=4_200
        ),
        WaitingPicture(
            position=1,
            user=UserName("<ada>"),
            qos="interactive",
            gpus=1,
            reason="",
            waited_ms=80,
            wait_ms=60_000,
            usual_ms=9_000,
        ),
    ),
    recent=(
        CellPicture(
            cell=CellId("c1"),
            user=UserName("ada"),
            project=ProjectId("user-ada"),
            qos="batch",
            node="n1",
            outcome=CellOutcome.EXECUTOR_DIED,
            ended_at_ms=1_700_000_000_000,
            ran_ms=12_000,
            gpu_ms=0,
            slot_ms=24_000,
            peak_memory_bytes=2 * 10**9,
        ),
    ),
    counters={"cells": 7},
    uptime_ms=90_000,
    slot_word="GPU",
)


def test_a_user_sees_their_own_name_and_nobody_elses() -> None:
    seen = hide_others(PICTURE, UserName("bob"))
    assert [slot.user for slot in seen.slots] == [SOMEONE, "bob", None]
    assert [one.user for one in seen.waiting] == ["bob", SOMEONE]
    text = msgspec.json.encode(seen).decode()
    assert "ada" not in text
    assert seen.recent == ()
    assert "cells" not in text


def test_what_the_machines_say_is_for_admins() -> None:
    """The page asks as an admin; a database's address and its driver's words are nobody else's to know."""
    absent = AbsentNode(node="n3", absent_ms=9_000, problem="its agent at 10.0.0.7 showed the key of n4")
    picture = msgspec.structs.replace(
        PICTURE, ledger_problem="connection to db.inside:5432 was refused", absent_nodes=(absent,)
    )
    seen = hide_others(picture, UserName("bob"))
    assert [one.node for one in seen.absent_nodes] == ["n3"]
    text = msgspec.json.encode(seen).decode()
    assert "10.0.0.7" not in text
    assert "db.inside" not in text


def test_the_summary_counts_what_is_free_ready_and_waited_for() -> None:
    assert describe_page(PICTURE).summary == (
        "1 of 3 GPUs free, 1 kept ready for the next cell, 2 waiting. The pool has been up for 90 s."
    )
    empty = msgspec.structs.replace(PICTURE, slots=(), waiting=(), recent=())
    assert describe_page(empty).summary == "The pool has no GPU at this moment."
    assert [table.rows for table in describe_page(empty).tables] == [(), (), ()]


def test_a_drained_node_is_told_and_when_one_will_be() -> None:
    busy, _, free = PICTURE.slots
    soon = msgspec.structs.replace(busy, drains_in_ms=3 * 3_600_000)
    picture = msgspec.structs.replace(PICTURE, slots=(soon, msgspec.structs.replace(free, state="drained")))
    page = describe_page(picture)
    assert page.summary.startswith("0 of 2 GPUs free, 1 on a node that is drained, 2 waiting.")
    assert [row[2] for row in page.tables[0].rows] == ["running a cell, drained in 3 h", "given no more cells"]


def test_what_admins_alone_can_mend_is_told_to_admins() -> None:
    picture = msgspec.structs.replace(PICTURE, missing_protections={"memory-limit": ("n1",), "namespaces": ("n2",)})
    assert ["n1" in warning for warning in describe_page(picture, for_admins=True).warnings] == [True, False]
    (told,) = describe_page(picture).warnings
    assert told.startswith("Cells on n2 see each other's processes")


def test_rows_are_in_order_and_in_words() -> None:
    slots, waiting, recent = describe_page(PICTURE).tables
    assert slots.rows[0] == ("n1", "A100 (40 GB)", "running a cell", "ada")
    assert slots.rows[2] == ("n2", "A100", "free", "—")
    assert [row[0] for row in waiting.rows] == ["1", "2"]
    assert waiting.rows[1] == ("2", "bob", "2", "batch", "4.2 s", "not known", "not known", "all 3 GPUs are busy")
    assert waiting.rows[0] == ("1", "<ada>", "1", "interactive", "80 ms", "9.0 s", "60 s", "—")
    assert recent.rows[0] == ("14 Nov 22:13:20", "ada", "user-ada", "n1", "its process died", "12 s", "24 s", "2 GB")


def test_the_page_shows_names_as_text_and_never_as_markup() -> None:
    folder = Path(bulletin_spawner.service.__file__).parent / "templates"
    template = Loader(str(folder)).load("pool.html")
    shell = {"shown": PAGES[0], "pages": PAGES, "built": None, "role": "user", "user": "bob", "hub": "/hub/"}
    html = template.generate(page=describe_page(PICTURE), problem=None, xsrf="x", version="1", **shell).decode()
    assert "&lt;ada&gt;" in html
    assert "<ada>" not in html
    assert html.count("<table>") == 3
    html = template.generate(page=None, problem="No pool.", xsrf="x", version="1", **shell).decode()
    assert 'role="alert">No pool.' in html
