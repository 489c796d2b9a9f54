"""`bulletin doctor` on a node says why its broker does not let it in."""

import shutil

from bulletin.wire import keys
from tests.integration.doctor.conftest import SHARED
from tests.integration.examining import examine
from tests.integration.nodes import Part, add, run


def test_a_node_is_told_why_its_broker_does_not_let_it_in(broker: Part) -> None:
    removed, good, elsewhere = (add(broker, name, name) for name in ("removed", "good", "elsewhere"))
    run("node", "remove", "removed", "--folder", str(broker.folder))
    node_file = keys.read_private(elsewhere / "node.json", keys.NodeFile)
    strange = keys.NodeFile(
        node="elsewhere",
        broker_address=node_file.broker_address,
        broker_public_key=keys.make_keys().public,
        keys=node_file.keys,
    )
    keys.write_private(elsewhere / "node.json", strange)
    assert "bulletin node add removed --replace" in examine("--folder", removed, SHARED).says("old-keys")
    assert "is not the broker that" in examine("--folder", elsewhere, SHARED).says("other-broker")
    assert examine("--folder", good, SHARED).wrong == []
    shutil.copy(broker.folder / "pool.json", good / "pool.json")
    assert "both node.json and pool.json" in examine("--folder", good, SHARED).says("two-roles")
    examined = examine("--folder", broker.folder, SHARED)
    assert "good: not there" in str(examined.found["node-absent"]) or "elsewhere: not there" in str(examined.found)
    assert "no slots" in examined.says("no-agent")
    assert "Set Pool.host" in examined.says("broker-hidden")
