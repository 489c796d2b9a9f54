"""The option line of %%gpu."""

import pytest

from bulletin.errors import BadOption
from bulletin.ids import EnvironmentId, ProjectId
from bulletin_magic.commands.options import FLAGS, RESOURCE_OPTIONS, RUN_OPTIONS, CellOptions, parse
from bulletin_magic.connection.resource_spec import ResourceSpec


@pytest.mark.parametrize(
    ("line", "resources"),
    [
        ("", ResourceSpec()),
        ("  # just a comment", ResourceSpec()),
        ("--gpus 2", ResourceSpec(gpus=2)),
        ("--gpus=0", ResourceSpec(gpus=0)),
        ("--memory 20G --gpu-memory 20gib", ResourceSpec(memory_bytes=20 * 10**9, gpu_memory_bytes=20 * 2**30)),
        ("--memory 20GB --gpu-memory 20Gi", ResourceSpec(memory_bytes=20 * 10**9, gpu_memory_bytes=20 * 2**30)),
        ("--gpu-type A100 --gpu-memory '40 GB'", ResourceSpec(gpu_type="A100", gpu_memory_bytes=40 * 10**9)),
        (
            "--gpu-type 'MIG 1g.10gb' --cpus 4 --memory=8GiB",
            ResourceSpec(gpu_type="MIG 1g.10gb", cpus=4, memory_bytes=8 * 2**30),
        ),
        ("--exclusive --gpus 4", ResourceSpec(gpus=4, is_exclusive=True)),
        ('--time "30 min"', ResourceSpec(walltime_ms=1_800_000)),
        ("--time='2 h' --qos batch", ResourceSpec(walltime_ms=7_200_000, qos="batch")),
        ("--project ml --environment torch", ResourceSpec(project=ProjectId("ml"), environment=EnvironmentId("torch"))),
        ('--label "a = b" --gpus 1', ResourceSpec(label="a = b")),
    ],
)
def test_options_become_a_resource_spec(line: str, resources: ResourceSpec) -> None:
    assert parse(line) == CellOptions(resources)


def test_how_long_to_wait_and_what_then_is_no_matter_of_the_lease() -> None:
    assert parse("--max-wait '2 min' --fallback cpu") == CellOptions(
        ResourceSpec(), max_wait_ms=120_000, fallback="cpu"
    )


def test_a_plan_is_asked_for_beside_other_options() -> None:
    assert parse("--gpus 2 --plan") == CellOptions(ResourceSpec(gpus=2), is_plan=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--gpu 2", ["'--gpu'", "Did you mean --gpus?"]),
        ("--zzz", ["'--zzz'", *RESOURCE_OPTIONS, *RUN_OPTIONS, *FLAGS]),
        ("--plan=yes", ["--plan", "takes no value"]),
        ("--exclusive=4", ["--exclusive", "takes no value"]),
        ("--exclusive 4", ["'4'", "code goes on the lines below"]),
        ("--pla", ["Did you mean --plan?"]),
        ("x = 1", ["'x'", "code goes on the lines below"]),
        ("--gpus two", ["--gpus", "'two'"]),
        ("--gpus -1", ["--gpus", "'-1'"]),
        ("--gpus", ["--gpus", "needs a value"]),
        ("--label=", ["--label", "needs a value"]),
        ("--gpus --time 3", ["--gpus", "needs a value"]),
        ("--cpus many", ["--cpus", "'many'"]),
        ("--memory 20", ["--memory", "unit", "20 GB", "20G", "20 GiB"]),
        ("--memory 20X", ["--memory", "'20X' is not understood", "GB", "GiB"]),
        ("--gpu-memory much", ["--gpu-memory", "'much'"]),
        ("--time soon", ["--time", "'soon'", "30 min"]),
        ("--time 0", ["--time", "some time"]),
        ('--label "open', ["quotation mark"]),
        ("--max-wait 0", ["--max-wait", "2 min"]),
        ("--fallback gpu", ["--fallback", "cpu, which is the notebook"]),
        ("--background x --fallback cpu", ["--fallback and --background cannot stand together", "Leave out one"]),
        ("--fallback cpu --each x", ["--fallback and --each cannot stand together", "Leave out one"]),
    ],
)
def test_what_is_not_understood_is_named_in_one_sentence(line: str, words: list[str]) -> None:
    with pytest.raises(BadOption) as caught:
        parse(line)
    assert all(word in str(caught.value) for word in words)
    assert str(caught.value).endswith("Nothing was run. `%%gpu?` shows the options.")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--gpus 99999999999", "anybody has"),
        ("--cpus 99999999999", "anybody has"),
        ("--memory 9999TB", "anybody has"),
        ("--time 99999d", "ten years"),
        (f"--label {'x' * 300}", "256 fit"),
    ],
)
def test_what_the_wire_would_not_carry_is_refused_here_in_words(line: str, words: str) -> None:
    with pytest.raises(BadOption, match=words):
        parse(line)
