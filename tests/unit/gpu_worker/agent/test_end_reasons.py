"""Whatever ends an executor, its user reads one true sentence."""

from typing import get_args

import pytest

from bulletin.codes import LeaseEnd
from gpu_worker.agent.end_reasons import EndReason, describe_exit


@pytest.mark.parametrize(
    ("end", "status", "words"),
    [
        (LeaseEnd.WALLTIME, -9, "walltime of 30 min"),
        (LeaseEnd.EVICTED, -9, "somebody who waited"),
        (None, None, "could not be started"),
        (None, 3, "with status 3"),
        (None, -9, "memory ran out"),
        (None, -11, "segmentation fault"),
        (None, -15, "signal 15"),
        (None, -40, "signal 40"),
    ],
)
def test_the_sentence_names_the_cause(end: EndReason | None, status: int | None, words: str) -> None:
    sentence = describe_exit(end, status, 1_800_000)
    assert words in sentence
    assert sentence.endswith((".", "time."))


def test_every_end_has_a_sentence() -> None:
    assert all(describe_exit(end, -9, 1_000) for end in get_args(EndReason))
