"""Whose names, labels and reasons the pages show to whom."""

from collections import Counter

import msgspec
import pytest

from bulletin.ids import LeaseId, ProjectId, SlotId, UserName
from bulletin.kept_time import make_kept_cell
from bulletin.picture_sight import SOMEONE
from bulletin.wire.page_requests import PoolSlot
from bulletin_spawner.service.me_view import view_me
from bulletin_spawner.service.now_view import MOST_SHOWN, view_now
from bulletin_spawner.service.project_view import view_project, view_projects
from bulletin_spawner.service.viewer import Sight, Viewer, viewer_of
from tests.unit.bulletin_spawner.page_reports import ADA, BOB, EVE, GUESTS, ML, REPORT, USE, VISION, lease, waiting

ADA_LOOKS = Viewer(user=ADA, groups=("ml",))
LEAD = Viewer(user=UserName("liz"), groups=("ml",), leads=("ml",))
ADMIN = Viewer(user=UserName("root"), is_admin=True)
NOBODY = Viewer(user=UserName(""))


def seen(viewer: Viewer) -> Sight:
    return Sight(viewer, REPORT)


def everything(viewer: Viewer) -> str:
    """All that the pages say to a viewer."""
    sight = seen(viewer)
    views = [view_now(REPORT, sight), view_me(REPORT, sight), view_projects(REPORT, sight)]
    if sight.may_open(ML):
        views.append(view_project(REPORT, USE, sight))
    return msgspec.json.encode(views).decode()


def test_of_others_a_user_reads_that_they_are_there_and_no_more() -> None:
    said = everything(ADA_LOOKS)
    assert "secret of ada" in said
    for word in ("bob", "eve", "guests", "l-bob", "w-eve", "secret of bob", "project guests"):
        assert word not in said, word
    now = view_now(REPORT, seen(ADA_LOOKS))
    assert [slot.user for node in now.nodes for slot in node.slots] == ["ada", SOMEONE, SOMEONE, None, None]
    assert [slot.is_in_quota for node in now.nodes for slot in node.slots] == [True, None, None, None, None]
    assert [one.reason for one in now.queue] == ["", "", "project ml is at its limit"]


@pytest.mark.parametrize(("viewer", "sees"), [(ADA_LOOKS, [0]), (LEAD, [0, 1]), (ADMIN, [0, 1, 2])])
def test_who_may_see_whose_a_node_is_sees_that_it_is_theirs_alone(viewer: Viewer, sees: list[int]) -> None:
    leases = tuple(msgspec.structs.replace(one, is_exclusive=True) for one in REPORT.leases)
    report = msgspec.structs.replace(REPORT, leases=leases)
    slots = [slot for node in view_now(report, Sight(viewer, report)).nodes for slot in node.slots]
    assert [place for place, slot in enumerate(slots) if slot.is_exclusive] == sees


def test_a_lead_sees_all_of_the_project_and_of_what_is_in_it_and_nothing_else() -> None:
    said = everything(LEAD)
    for word in ("secret of ada", "secret of bob", "l-bob", "w-bob", "vision"):
        assert word in said, word
    for word in ("eve", "guests"):
        assert word not in said, word
    assert [one.project for one in view_projects(REPORT, seen(LEAD)).projects] == ["ml", "vision"]


def test_an_admin_sees_everything() -> None:
    said = everything(ADMIN)
    for word in ("secret of ada", "secret of bob", "secret of eve", "guests"):
        assert word in said, word


def test_who_is_nobody_sees_nobody() -> None:
    said = everything(NOBODY)
    for word in ("ada", "bob", "eve", "guests", "vision"):
        assert word not in said, word


def test_who_leads_a_part_of_a_project_does_not_lead_all_of_it() -> None:
    sight = seen(Viewer(user=UserName("liz"), groups=("ml",), leads=("vision",)))
    assert sight.leads(VISION)
    assert not sight.leads(ML)
    assert sight.may_open(ML), "it is their own"
    assert not sight.may_open(GUESTS)


def test_what_is_held_and_does_nothing_is_said_to_be_idle_to_everybody() -> None:
    now = view_now(REPORT, seen(ADA_LOOKS))
    states = [slot.state for node in now.nodes for slot in node.slots]
    assert states == ["busy", "idle", "hot", "free", "drained"]
    assert (now.counts.idle, now.counts.hot, now.counts.free, now.counts.total) == (1, 1, 1, 5)
    assert now.nodes[0].slots[1].for_ms == 90_000


def test_a_place_that_is_kept_between_cells_is_no_cell_that_runs() -> None:
    kept = lease("l-kept", ADA, ML, "g0", cell=make_kept_cell(), label="kept between cells")
    report = msgspec.structs.replace(REPORT, leases=(kept, *REPORT.leases[1:]))
    slots = (msgspec.structs.replace(REPORT.slots[0], lease=kept.lease), *REPORT.slots[1:])
    report = msgspec.structs.replace(report, slots=slots)
    sight = Sight(ADA_LOOKS, report)
    assert [one.state for one in view_me(report, sight).running] == ["kept"]
    slot = view_now(report, sight).nodes[0].slots[0]
    assert (slot.state, slot.for_ms) == ("idle", 120_000), "reserved, and idle"


def test_what_frees_next_are_cells_that_run_by_their_walltimes() -> None:
    now = view_now(REPORT, seen(ADA_LOOKS))
    assert [(one.node, one.slots, one.in_ms) for one in now.frees_next] == [("n1", ("A100",), 480_000)] * 2


def test_a_node_that_somebody_has_brought_is_shown_to_them_and_to_admins_and_is_nothing_of_the_pools() -> None:
    box = PoolSlot(node="box", slot=SlotId("g0"), name="H100", lease=LeaseId("l-box"), owner=ADA)
    running = msgspec.structs.replace(REPORT.leases[0], lease=LeaseId("l-box"), node="box", walltime_ms=240_000)
    report = msgspec.structs.replace(REPORT, slots=(*REPORT.slots, box), leases=(*REPORT.leases, running))
    pools, bob = view_now(REPORT, seen(ADMIN)), Viewer(user=BOB, groups=("ml",))
    for viewer, owners in (
        (ADA_LOOKS, {"": 2, "ada": 1}),
        (ADMIN, {"": 2, "ada": 1}),
        (bob, {"": 2}),
        (NOBODY, {"": 2}),
    ):
        now = view_now(report, Sight(viewer, report))
        assert Counter(node.owner for node in now.nodes) == owners
        assert now.counts.total == pools.counts.total
        assert now.frees_next == pools.frees_next


def test_who_waits_for_a_node_that_they_have_brought_is_told_to_them_and_to_admins_apart_from_the_line() -> None:
    own = waiting("w-box", ADA, ML, 1)
    report = msgspec.structs.replace(REPORT, waiting_for_own=(own,))
    bob = Viewer(user=BOB, groups=("ml",))
    for viewer, sees in ((ADA_LOOKS, ["w-box"]), (ADMIN, ["w-box"]), (bob, []), (LEAD, []), (NOBODY, [])):
        now, before = view_now(report, Sight(viewer, report)), view_now(REPORT, seen(viewer))
        assert [one.lease for one in now.own_queue] == sees
        assert now.own_waiting == len(sees)
        assert all(one.is_for_own for one in now.own_queue)
        assert (now.queue, now.counts.waiting) == (before.queue, before.counts.waiting)
    mine = view_me(report, Sight(ADA_LOOKS, report)).waiting
    assert [(one.lease, one.is_for_own) for one in mine] == [("w-ada", False), ("w-box", True)]


def test_project_opens_on_ones_own_and_for_who_is_in_none_on_the_one_most_in_use() -> None:
    busy = tuple(msgspec.structs.replace(row, used_milli=9 * (row.project == GUESTS)) for row in REPORT.projects)
    report = msgspec.structs.replace(REPORT, projects=busy)
    nobodys = Viewer(user=UserName("liz"), leads=("ml",))
    member = Viewer(user=UserName("root"), groups=("vision",), is_admin=True)
    newcomer = Viewer(user=UserName("new"))
    for viewer, opens in (
        (ADMIN, "guests"),
        (member, "vision"),
        (ADA_LOOKS, "ml"),
        (nobodys, "ml"),
        (newcomer, "default"),
    ):
        projects = view_projects(report, Sight(viewer, report))
        assert projects.opens == opens, viewer
        assert projects.opens in [one.project for one in projects.projects]


def test_of_a_long_line_the_first_are_shown_and_ones_own_wherever_they_stand() -> None:
    rows = [waiting(f"w{number}", EVE, GUESTS, number) for number in range(1, 2_000)]
    report = msgspec.structs.replace(REPORT, waiting=(*rows, waiting("w-ada", ADA, ML, 2_000)), waiting_count=2_000)
    now = view_now(report, Sight(ADA_LOOKS, report))
    assert [one.position for one in now.queue] == [*range(1, MOST_SHOWN + 1), 2_000]
    assert (now.counts.waiting, now.counts.mine_waiting) == (2_000, 1)


def test_members_see_what_others_used_together_and_the_lead_by_name() -> None:
    own = view_project(REPORT, USE, seen(ADA_LOOKS))
    assert [(one.user, one.slot_ms, one.cells) for one in own.members] == [("ada", 2, 1), ("others", 3, 2)]
    assert [one.name for one in own.labels] == ["secret of ada"]
    assert own.running == own.waiting == own.boosts == ()
    led = view_project(REPORT, USE, seen(LEAD))
    assert [one.user for one in led.members] == ["bob", "ada"]
    assert [one.user for one in led.running] == ["ada", "bob"]


def test_me_says_whose_budgets_the_cells_of_a_project_use_up() -> None:
    rows = [msgspec.structs.replace(row, budget_ms=1) for row in REPORT.projects[:2]]
    report = msgspec.structs.replace(REPORT, projects=tuple(rows))
    vic = Viewer(user=UserName("vic"), groups=(VISION,))
    assert [(one.project, one.budgets) for one in view_me(report, Sight(vic, report)).used_budgets] == [
        (VISION, (VISION, ML))
    ]
    assert view_me(REPORT, Sight(vic, REPORT)).used_budgets == (), "none of them has one"


def test_other_projects_that_lent_have_no_name() -> None:
    shown = view_project(REPORT, USE, seen(ADA_LOOKS))
    assert [(one.rank, one.project, one.is_own) for one in shown.lenders] == [
        (1, "another project", False),
        (2, "ml", True),
    ]


@pytest.mark.parametrize(
    ("model", "role", "leads"),
    [
        ({"name": "ada", "scopes": []}, "user", ()),
        ({"name": "ada", "scopes": ["custom:bulletin:lead!group=vision"]}, "lead", ("vision",)),
        ({"name": "ada", "scopes": ["custom:bulletin:lead"]}, "lead", ("ml",)),
        ({"name": "ada", "scopes": ["custom:bulletin:manage"]}, "admin", ()),
        ({"name": "ada", "scopes": [], "admin": True}, "user", ()),
        ({"name": "ada", "scopes": ["admin-ui"], "admin": True}, "admin", ()),
    ],
)
def test_what_somebody_is_follows_from_the_scopes_of_the_token(
    model: dict[str, object], role: str, leads: tuple[str, ...]
) -> None:
    viewer = viewer_of(model, ["ml"])
    assert (viewer.user, viewer.role, viewer.leads) == ("ada", role, leads)


def test_a_service_of_the_hub_is_not_the_user_of_its_name() -> None:
    viewer = viewer_of({"name": "ada", "kind": "service", "scopes": []}, [])
    assert not Sight(viewer, REPORT).may_see(ADA, ML)
    assert view_me(REPORT, Sight(viewer, REPORT)).running == ()


def test_who_has_no_group_has_the_default_project() -> None:
    assert Viewer(user=BOB).own_projects == (ProjectId("default"),)


def test_a_guarantee_that_the_pool_can_keep_a_part_of_is_shown_with_what_it_is_by_the_settings() -> None:
    scaled = tuple(msgspec.structs.replace(row, promised_milli=3000) for row in REPORT.projects if row.project == ML)
    report = msgspec.structs.replace(REPORT, projects=scaled)
    (standing,) = view_me(report, Sight(ADA_LOOKS, report)).projects
    assert (standing.guaranteed_milli, standing.promised_milli) == (2, 3000)
    (choice,) = view_projects(report, Sight(ADA_LOOKS, report)).projects
    assert (choice.guaranteed_milli, choice.promised_milli) == (2, 3000)
    whole = view_projects(REPORT, Sight(ADA_LOOKS, REPORT)).projects
    assert {one.promised_milli for one in whole} == {None}
