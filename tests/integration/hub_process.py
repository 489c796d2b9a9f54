"""A hub as a process of its own. `python -m tests.integration.hub_process USER...` prints its port."""

import sys

from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub


def main() -> None:
    """Serve until standard input ends."""
    hub = FakeHub()
    for name in sys.argv[1:]:
        hub.users[f"{name}-token"] = {"name": name, "kind": "user", "scopes": [SCOPE]}
        hub.groups[name] = ["course"]
    with hub.serving():
        print(hub.server_address[1], flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
