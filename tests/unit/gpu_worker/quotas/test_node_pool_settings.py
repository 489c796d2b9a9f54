"""Node pools in a quota file."""

import tomllib

import jsonschema
import pytest

from bulletin.errors import BadConfig
from gpu_worker.quotas import Finding, Quotas, difference, parse_quotas
from gpu_worker.quotas.schema import quota_schema
from gpu_worker.scheduler.policy.projects import guarantees


def toml(text: str) -> tuple[Quotas, list[Finding]]:
    return parse_quotas(text.encode(), "q.toml")


NODE_POOLS = """
[node_pools.h100]
gpu = "NVIDIA H100"
[node_pools.own]
nodes = ["gpu-03", "gpu-04"]
[projects.lab]
guaranteed = 2
node_pools = { h100 = 8, own = 0.5 }
"""


def test_node_pools_are_read_and_are_part_of_the_guarantee() -> None:
    quotas, _ = toml(NODE_POOLS)
    assert [(one.name, one.words, one.nodes) for one in quotas.node_pools] == [
        ("h100", ("h100", "nvidia"), ()), ("own", (), ("gpu-03", "gpu-04")),
    ]  # fmt: skip
    [lab] = quotas.projects
    assert lab.pool_guarantees == (("h100", 8000), ("own", 500))
    assert guarantees(quotas.projects) == {"lab": 8500}
    assert quotas.settings.node_pools == quotas.node_pools
    same = parse_quotas(
        b"node_pools:\n  h100: {gpu: NVIDIA H100}\n  own: {nodes: [gpu-03, gpu-04]}\n"
        b"projects:\n  lab: {guaranteed: 2, node_pools: {h100: 8, own: 0.5}}",
        "q.yaml",
    )[0]
    assert same == quotas
    assert jsonschema.Draft202012Validator(quota_schema()).is_valid(tomllib.loads(NODE_POOLS))


def test_a_change_of_node_pools_is_told() -> None:
    after = toml(NODE_POOLS.replace("h100 = 8", "h100 = 6").replace('["gpu-03", "gpu-04"]', '["gpu-03"]'))[0]
    assert [str(change) for change in difference(toml(NODE_POOLS)[0], after)] == [
        "node_pools of project 'lab': 'h100' 8 GPUs; 'own' 0.5 GPUs -> 'h100' 6 GPUs; 'own' 0.5 GPUs",
        "nodes of node pool 'own': 'gpu-03', 'gpu-04' -> 'gpu-03'",
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[projects.lab]\nnode_pools = { h100 = 8 }", 2, "'h100', which is not there. Write [node_pools.NAME]"),
        (NODE_POOLS.replace("h100 = 8", "H100 = 8"), 8, "the node pool 'H100', which is not there. Did you mean h100?"),
        (NODE_POOLS.replace("h100 = 8", "h100 = -1"), 8, "h100 is -1. Write a number of GPUs from 0 on"),
        ("[node_pools.empty]", 1, "node_pools.empty does not say what is in it. Write gpu or nodes."),
        ("[node_pools.x]\nnodes = 'gpu-03'", 2, "Write a list of nodes, each once"),
        ("[node_pools.x]\ngpu = '...'", 2, "Write words of the GPU's name"),
        (NODE_POOLS + "limit = 4", 9, "'lab' has 8.5 GPUs guaranteed and a limit of 4 GPUs."),
    ],
)
def test_what_is_wrong_with_node_pools_is_said_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(BadConfig) as error:
        toml(text)
    assert words in str(error.value)
    assert f":{line}: " in str(error.value)
