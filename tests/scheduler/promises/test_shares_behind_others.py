"""A share comes in time also to whom others stand before in line who cannot have one, or not yet."""

import pytest

from tests.scheduler.promises.stories import batch, left, on_one_node

#: What a share takes: `share_after`, the second in which shares are looked at, the grace.
SHARE_S = 120 + 1 + 30

DEPARTMENT = "[projects.school]\n" + "".join(f'[projects.{name}]\nparent = "school"\n' for name in ("maths", "art"))


@pytest.mark.parametrize("text", ["", DEPARTMENT])
def test_a_user_has_their_part_behind_another_project_that_has_its_own(text: str) -> None:
    """`art` has one of three and stands before `maths`, which has two: it can take none, but `bob` can from `ann`."""
    seen = on_one_node(
        3,
        batch(1, 2, "maths", "ann", "ann"),
        batch(2, 1, "art"),
        batch(400, 3, "art", "more"),
        batch(500, 1, "maths", "bob", "bob"),
        text=text,
    )
    assert seen.wait("bob0") <= SHARE_S
    assert left(seen, "art") == 0


def test_a_project_has_its_share_of_a_department_behind_a_larger_one_beside_it() -> None:
    """Whoever is next at the top can take nothing there, and has nothing inside; who is behind has a share inside."""
    text = DEPARTMENT + "[projects.far]\n"
    seen = on_one_node(
        5,
        batch(1, 3, "maths"),
        batch(2, 2, "far"),
        batch(400, 4, "far", "more"),
        batch(500, 1, "art"),
        text=text,
    )
    assert seen.wait("art0") <= SHARE_S
    assert left(seen, "far") == 0


def test_a_share_for_one_of_two_gpus_comes_behind_one_that_waits_for_as_many_in_vain() -> None:
    seen = on_one_node(
        4,
        batch(1, 2, "maths", "ann", "ann", gpus=1),
        batch(2, 2, "art", "cem", "cem"),
        batch(400, 3, "art", "more", gpus=2),
        batch(500, 1, "maths", "bob", "bob"),
        text=DEPARTMENT,
    )
    assert seen.wait("bob0") <= SHARE_S
