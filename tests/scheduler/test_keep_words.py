"""What somebody is told who borrows, and waits because other projects keep their hot sessions."""

from tests.scheduler.bench import MINUTE, granted, models, project, slots
from tests.scheduler.quota_bench import Quotas


def test_who_borrows_is_told_how_many_gpus_are_kept_and_until_when() -> None:
    pool = Quotas(project("class", guaranteed_milli=2000, keep_hot_ms=5 * MINUTE))
    pool.join("a", slots(2))
    for session in ("class.ann", "class.tom"):
        pool.busy(session)
        pool.later(MINUTE)
        pool.end(f"{session}:1")
    assert pool.wants("lab.eve") == []
    assert pool.why("lab.eve/1").reason == ("2 GPUs are kept for people between two cells, the first for another 4 min")
    assert granted(pool.join("b", slots(2))) == ["lab.eve:1"]
    pool.busy("lab.sam")
    assert pool.wants("lab.tim") == []
    assert "for another 4 min; all others are busy" in pool.why("lab.tim/1").reason
    assert pool.wants("class.kim") == []
    assert "a GPU is being freed for you" in pool.why("class.kim/1").reason


def test_what_is_kept_of_another_type_is_no_reason_to_wait() -> None:
    pool = Quotas(project("class", guaranteed_milli=1000, keep_hot_ms=5 * MINUTE))
    pool.join("a", models(1, "NVIDIA H100", 80) + models(1, "NVIDIA L4", 24))
    pool.busy("lab.eve", gpu_type="L4")
    pool.busy("class.ann", gpu_type="H100")
    pool.end("class.ann:1")
    assert pool.wants("lab.sam", gpu_type="L4") == []
    assert pool.why("lab.sam/1").reason == "the only GPU of this kind is busy"
    assert pool.wants("lab.tim", gpu_type="H100") == []
    assert pool.why("lab.tim/1").reason.startswith("1 GPU is kept for people between two cells")
