"""What a change of the quota file is said to change."""

from hypothesis import given, strategies as st

from gpu_worker.quotas import QuotaChange, Quotas, difference
from gpu_worker.quotas.value_kinds import Duration, Factor, GpuAmount, GpuHours
from gpu_worker.scheduler.policy.projects import Budget
from tests.unit.gpu_worker.quotas.quota_texts import QUICK, toml


def test_a_change_says_what_it_was_and_what_it_is() -> None:
    before, _ = toml("[projects.physics]\nguaranteed = 4\n[projects.old]\nlimit = 2\nborrow = false\nguaranteed = 1")
    after, _ = toml(
        "[projects.new]\nparent = 'physics'\n[projects.physics]\nguaranteed = 6\nbudget = '1.5 GPU-hours per day'\n"
        "[qos.long]\nrunning_per_user = 'unlimited'\nwalltime = '150 min'\n[qos.night]\nwalltime = '1 d'"
    )
    changes = difference(before, after)
    assert changes[0] == QuotaChange(
        what="project", name="physics", field="guaranteed", before="4 GPUs", after="6 GPUs"
    )
    assert [str(one) for one in changes] == [
        "guaranteed of project 'physics': 4 GPUs -> 6 GPUs",
        "budget of project 'physics': unlimited -> 1.5 GPU-hours per day",
        "project 'old' removed, had guaranteed 1 GPU, limit 2 GPUs, borrow false",
        "project 'new' added, with parent 'physics'",
        "walltime of qos 'long': 7 d -> 150 min",
        "running_per_user of qos 'long': 1 -> unlimited",
        "qos 'night' added, with walltime 1 d",
    ]


def test_the_order_of_a_file_is_no_change() -> None:
    one, _ = toml("[projects.a]\nlimit = 1\n[projects.b]\nlimit = 2")
    other, _ = toml("[projects.b]\nlimit = 2.0\n[projects.a]\nlimit = 1.000")
    assert difference(one, other) == []
    added = difference(Quotas(), toml("[projects.a]")[0])
    assert [str(change) for change in added] == ["project 'a' added, with nothing set"]


@given(st.integers(0, 10**12), st.integers(0, 10**12))
@QUICK
def test_two_values_never_look_alike_in_a_change(one: int, other: int) -> None:
    for kind in (GpuAmount(), Duration(0, 10**12), Factor()):
        assert (kind.show(one) == kind.show(other)) == (one == other)
    assert (GpuHours().show(Budget(one, "day")) == GpuHours().show(Budget(other, "day"))) == (one == other)
