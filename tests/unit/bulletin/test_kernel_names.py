"""What a kernel is called: what is read of it."""

import pytest

from bulletin.kernel_names import is_restarted, parse_kernel_name


def test_a_name_says_which_kernel_of_jupyters_it_is_and_what_it_does() -> None:
    assert parse_kernel_name("a-b-12") == ("a-b", "front")
    assert parse_kernel_name("a-b-12-background-x1") == ("a-b", "background")
    assert parse_kernel_name("a-b-12-sweep-x1") == ("a-b", "sweep")
    assert parse_kernel_name("nobody's") == ("", "front")


@pytest.mark.parametrize(
    ("earlier", "kernel", "is_so"),
    [
        ("a-b-12", "a-b-13", True),
        ("a-b-12-background-x1", "a-b-13", True),
        ("a-b-12", "a-b-13-sweep-y2", True),
        ("a-b-12", "a-b-12", False),
        ("a-b-12-background-x1", "a-b-12", False),
        ("a-c-12", "a-b-13", False),
        ("k", "k", False),
        ("", "", False),
    ],
)
def test_another_process_of_the_same_kernel_was_restarted(earlier: str, kernel: str, *, is_so: bool) -> None:
    assert is_restarted(earlier, kernel) is is_so
