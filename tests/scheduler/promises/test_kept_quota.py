# settings and histories in one line each
"""What cells go for, of a guarantee, is there for a class that never borrows when they have gone."""

import pytest

from tests.scheduler.promises.crowds import SOON_S
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, join, left, look, quotas, waits

CLASSES = (
    '[qos.interactive]\nmin_runtime = "0 s"\ngrace = "10 s"\nshare_after = "10 s"\n'
    '[qos.batch]\nmin_runtime = "0 s"\ngrace = "2 min"\n[qos.reserved]\nshare_after = "10 s"\n'
)
LAB = CLASSES + "[projects.lab]\nguaranteed = 1\n"
OWN = '[projects.sib]\nparent = "dep"\nguaranteed = 1\n'
IN_DEPARTMENT = (
    CLASSES + '[projects.dep]\nguaranteed = 1\n[projects.lab]\nparent = "dep"\n[projects.sib]\nparent = "dep"\n'
)


@pytest.mark.parametrize("later_s", [1, 60, 119])
@pytest.mark.parametrize("user", ["", "ann"])
@pytest.mark.parametrize(("text", "project"), [(LAB, "lab"), (IN_DEPARTMENT, "lab"), (IN_DEPARTMENT, "sib")])
def test_who_came_later_begins_beside_it_once_the_cells_have_gone(
    text: str, project: str, user: str, later_s: int
) -> None:
    """Else a batch cell was lost for somebody who then waits until the one who came later is through."""
    same = {"user": user} if user else {}
    seen = look(
        quotas(text), join(1, 4),
        ask(1, 1, "lab", BATCH_S, gpu_type="H100", name="batch", **LONG),
        ask(200, 1, "lab", 300, gpu_type="H100", name="reserved", qos="reserved", **same),
        ask(200 + later_s, 1, project, 3000, gpu_type="L4", name="typed", **same),
        last=900,
    )  # fmt: skip
    assert left(seen, "batch") == 1
    assert waits(seen, "reserved") == [120]
    assert waits(seen, "typed") == [120 - later_s]


def test_a_lower_class_begins_meanwhile_since_it_borrows_in_any_case() -> None:
    seen = look(
        quotas(LAB), join(1, 4),
        ask(1, 1, "lab", BATCH_S, gpu_type="H100", name="batch", **LONG),
        ask(200, 1, "lab", 300, gpu_type="H100", name="reserved", qos="reserved"),
        ask(260, 2, "lab", 3000, gpu_type="L4", name="more", **LONG),
        last=900,
    )  # fmt: skip
    assert waits(seen, "more") == [0, 0]
    assert waits(seen, "reserved") == [120]


def test_a_guarantee_inside_covers_who_came_later_at_once() -> None:
    seen = look(
        quotas(CLASSES + '[projects.dep]\nguaranteed = 2\n[projects.lab]\nparent = "dep"\n' + OWN), join(1, 4),
        ask(1, 1, "lab", BATCH_S, gpu_type="H100", name="batch", **LONG),
        ask(200, 1, "lab", 300, gpu_type="H100", name="reserved", qos="reserved"),
        ask(260, 1, "sib", 3000, gpu_type="L4", name="typed"),
        last=900,
    )  # fmt: skip
    assert waits(seen, "typed") == [0]
    assert waits(seen, "reserved") == [120]


def test_a_higher_class_of_its_project_begins_at_once_and_who_never_borrows_once_that_is_over() -> None:
    seen = look(
        quotas(LAB + '[qos.urgent]\nwalltime = "1 h"\npriority = 300\n'), join(1, 4),
        ask(1, 1, "lab", BATCH_S, gpu_type="H100", name="batch", **LONG),
        ask(200, 1, "lab", 300, gpu_type="H100", name="reserved", qos="reserved"),
        ask(260, 1, "lab", 500, gpu_type="L4", name="urgent", qos="urgent"),
        last=1000,
    )  # fmt: skip
    assert waits(seen, "urgent") == [0]
    assert seen.granted("reserved0") >= 760


@pytest.mark.parametrize("beside", [1, 2, 3])
def test_a_cell_that_went_for_a_share_does_not_begin_again_beside_it_only_to_go_again(beside: int) -> None:
    """It began once in ten seconds, and was taken back each time, while the batch cell had its grace."""
    seen = look(
        quotas(LAB), join(1, 8),
        ask(1, 1, "lab", BATCH_S, gpu_type="H100", name="batch", **LONG),
        ask(2, 1, "lab", 3000, gpu_type="L4", name="typed", user="ann"),
        ask(30, 1, "lab", BATCH_S, gpu_type="L4", name="more", user="ann", gpus=beside, **LONG),
        ask(200, 1, "lab", 300, gpu_type="H100", name="reserved", qos="reserved"),
        last=900,
    )  # fmt: skip
    assert left(seen, "typed") == (beside > 0)
    assert waits(seen, "reserved")[0] <= 120 + SOON_S
