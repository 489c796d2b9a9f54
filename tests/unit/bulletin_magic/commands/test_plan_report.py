"""The words of a plan and of what is on the pool."""

import pytest
from msgspec import structs

from bulletin.errors import CannotSend
from bulletin.ids import LeaseId, ProjectId, SlotId, UserName
from bulletin.state.holdings import Holding, Holdings, Home
from bulletin.state.plan import Fate, Plan, Row
from bulletin.wire.messages import Picture, ProjectPicture, SlotPicture, WaitingPicture
from bulletin_magic.commands.plan_report import describe_plan, describe_quota, describe_wait
from bulletin_magic.commands.vars_report import describe_holdings
from bulletin_magic.connection.resource_spec import LeaseInfo, ResourceSpec

LEASE_INFO = LeaseInfo(lease_id=LeaseId("l"), node="node1", slots=("GPU-0",), slot_word="GPU")
ROWS = (
    Row("data", "array", Fate.SENT, 8_000_000, 1_048_700, "Only the parts that changed."),
    Row("names", "list", Fate.THERE, 120),
    Row("np", "module", Fate.BY_NAME),
    Row("cfg['lock']", "lock", Fate.STAYS, note="A lock cannot travel."),
)


def test_a_plan_is_a_table_and_a_total() -> None:
    shown = describe_plan(Plan(ROWS, 1_050_000, 1_300), ["A GPU is free."])
    assert shown["text/plain"].splitlines() == [
        "name         kind     size  to be sent  note",
        "data         array    8 MB     1.05 MB  Only the parts that changed.",
        "names        list    120 B         0 B  There already.",
        "np           module                     Imported there by its name.",
        "cfg['lock']  lock                       Stays here. A lock cannot travel.",
        "",
        "1.05 MB would be sent in all, with 1.3 KB of settings and random states.",
        "A GPU is free.",
        "This is a plan: nothing was run, and nothing was sent.",
    ]
    page = shown["text/html"]
    assert page.count("<tr>") == 5
    assert all(f">{word}</" in page for word in ("data", "1.05 MB", "There already.", "A GPU is free."))


def test_a_refusal_is_said_in_the_words_of_the_error() -> None:
    error = CannotSend("gen", "gen", "generator")
    refused = Row("gen", "generator", Fate.REFUSED)
    text = describe_plan(Plan((*ROWS, refused), 1_050_000, 1_300, (error,)), [])["text/plain"]
    assert "gen          generator                     Cannot be sent: see below." in text
    assert "The cell would be refused. Without 'gen', 1.05 MB would be sent" in text
    assert str(error) in text


def test_a_plan_without_variables_says_so() -> None:
    shown = describe_plan(Plan(ROWS[1:], 1_300, 1_300, is_open=True), [])["text/plain"]
    assert "None of your variables would be sent, only 1.3 KB of settings and random states." in shown
    assert "so all variables go with it" in shown
    alone = describe_plan(Plan((), 1_300, 1_300), [])
    assert "<table" not in alone["text/html"]
    assert alone["text/plain"].startswith("None of your variables would be sent")


def test_a_name_cannot_smuggle_markup_into_the_notebook() -> None:
    row = Row("d['<script>']", "<b>", Fate.STAYS, note="<i>")
    page = describe_plan(Plan((row,), 1, 1), ["<script>"])["text/html"]
    assert not any(tag in page for tag in ("<script>", "<b>", "<i>"))


SLOT = SlotPicture(node="node1", slot=SlotId("s"), name="H100", state="free")
BUSY, IDLE = structs.replace(SLOT, state="busy"), structs.replace(SLOT, state="hot")
ELSEWHERE = structs.replace(SLOT, node="node2")
WAITING = WaitingPicture(position=1, user=UserName("bob"), qos="batch", gpus=1, reason="", waited_ms=1)


@pytest.mark.parametrize(
    ("slots", "gpus", "waiting", "sentence"),
    [
        ((BUSY, SLOT), 1, 0, "A GPU is free: the cell would not have to wait."),
        ((SLOT, SLOT), 2, 0, "2 GPUs are free: the cell would not have to wait."),
        ((SLOT, ELSEWHERE), 2, 0, "No node has 2 GPUs free: the cell would wait. Nobody else waits."),
        ((BUSY, IDLE), 1, 0, "No GPU is free, but a notebook that holds one without a cell gives way."),
        ((BUSY,), 1, 0, "No GPU is free: the cell would wait. Nobody else waits."),
        ((), 1, 0, "No GPU is free: the cell would wait. Nobody else waits."),
        ((SLOT,), 1, 1, "1 cell waits for a GPU."),
        ((BUSY,), 1, 3, "3 cells wait for a GPU."),
    ],
)
def test_the_wait_is_told_from_the_picture(
    slots: tuple[SlotPicture, ...], gpus: int, waiting: int, sentence: str
) -> None:
    picture = Picture(slots=slots, waiting=(WAITING,) * waiting, recent=(), counters={}, uptime_ms=1, slot_word="GPU")
    assert describe_wait(picture, None, ResourceSpec(gpus=gpus)) == sentence
    assert describe_wait(picture, LEASE_INFO, ResourceSpec(gpus=gpus)) == (
        "This notebook holds GPU-0 of node1: the cell would run there at once."
    )
    assert describe_wait(picture, LEASE_INFO, ResourceSpec(gpus=gpus), is_refused=True) == (
        "This notebook holds GPU-0 of node1: the cell would be refused there, as the last one was."
    )


@pytest.mark.parametrize(
    ("used", "covered", "limit", "gpus", "sentence"),
    [
        (1, 1, None, 1, "It would be in quota: the guarantee of your project 'ml' covers it."),
        (1, 1, None, 2, "It would borrow, and its owner may need it back: your project 'ml' uses 1 of 2 GPUs guaranteed."),  # noqa: E501
        (3, 0, 4, 2, "It would wait for others of your project 'ml', which uses 3 of 4 GPUs that it may use."),
        (3, 0, 4, 0, ""),
    ],
)  # fmt: skip
def test_the_quota_is_told_from_the_picture(
    used: int, covered: int, limit: int | None, gpus: int, sentence: str
) -> None:
    project = ProjectPicture(
        project=ProjectId("ml"), used_milli=used * 1000, guaranteed_milli=2000, covered_milli=covered * 1000,
        limit_milli=None if limit is None else limit * 1000,
    )  # fmt: skip
    picture = Picture(slots=(), waiting=(), recent=(), counters={}, uptime_ms=1, slot_word="GPU", project=project)
    assert describe_quota(picture, ResourceSpec(gpus=gpus)) == sentence
    assert not describe_quota(picture, ResourceSpec(gpus=1, project=ProjectId("other")))
    bare = structs.replace(project, guaranteed_milli=0, covered_milli=0, limit_milli=None)
    assert not describe_quota(structs.replace(picture, project=bare), ResourceSpec(gpus=1))


def test_what_is_on_the_pool_is_a_table_with_the_lease_below() -> None:
    values = (
        Holding("data", "array", Home.BOTH, 8_000_000),
        Holding("box[1]", "generator", Home.THERE),
        Holding("old", "generator", Home.GONE),
    )
    text = describe_holdings(Holdings(values, 8_000_000, 2, ("mine",)), LEASE_INFO, "")["text/plain"]
    assert text.splitlines() == [
        "name    kind       arrays  where",
        "data    array        8 MB  in the notebook and on the pool",
        "box[1]  generator          only on the pool, for %%gpu cells to use",
        "",
        "GPU-0 of node1 has these as the last %%gpu cell left them: 8 MB of arrays in all.",
        "2 values are there that no name here leads to any more; the next %%gpu cell drops them.",
        "Sources of your modules are there: mine.",
        "old is gone: the process on the pool that held it has ended.",
    ]


def test_nothing_on_the_pool_is_said_plainly() -> None:
    assert describe_holdings(Holdings((), 0, 0, ()), None, "")["text/plain"] == (
        "Nothing of this notebook is on the pool."
    )
