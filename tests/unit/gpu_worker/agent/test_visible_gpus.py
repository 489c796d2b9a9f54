"""An agent in a job offers the GPUs of its job, and none of others on that host."""

import pytest

from gpu_worker.agent.visible_gpus import FoundGpu, select_gpus

FOUR = [FoundGpu(f"GPU-{letter}000", (), minor) for minor, letter in enumerate("abcd")]
#: The driver lists them in another order than their device nodes have.
TURNED = [FoundGpu("GPU-a000", (), 1), FoundGpu("GPU-b000", (), 0)]
SLICED = [FoundGpu("GPU-a000", ("MIG-1", "MIG-2"), 0), FoundGpu("GPU-b000", (), 1)]


@pytest.mark.parametrize(
    ("visible", "found", "places"),
    [
        (None, FOUR, [0, 1, 2, 3]),
        ("", FOUR, []),
        ("NoDevFiles", FOUR, []),
        ("2,3", FOUR, [2, 3]),
        ("0", TURNED, [1]),
        ("GPU-c", FOUR, [2]),
        ("GPU-c000, GPU-a000", FOUR, [0, 2]),
        ("7", FOUR, []),
    ],
)
def test_the_gpus_of_a_job_are_those_that_it_was_given(
    visible: str | None, found: list[FoundGpu], places: list[int]
) -> None:
    assert select_gpus(visible, found) == [(place, None) for place in places]


def test_a_job_that_sees_no_others_has_all_that_it_sees_however_they_are_numbered() -> None:
    constrained = [FoundGpu("GPU-c000", (), 2), FoundGpu("GPU-d000", (), 3)]
    assert select_gpus("0,1", constrained) == [(0, None), (1, None)]


def test_a_slice_is_the_jobs_and_its_neighbour_is_not() -> None:
    assert select_gpus("MIG-2", SLICED) == [(0, ("MIG-2",))]
