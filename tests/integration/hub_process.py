"""A hub as a process of its own. `python -m tests.integration.hub_process USER...` prints its port."""

import sys
import threading

from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub


def main() -> None:
    """Serve until standard input ends."""
    hub = FakeHub()
    for name in sys.argv[1:]:
        hub.users[f"{name}-token"] = {"name": name, "kind": "user", "scopes": [SCOPE]}
        hub.groups[name] = ["course"]
    thread = threading.Thread(target=hub.serve_forever)
    thread.start()
    print(hub.server_address[1], flush=True)
    sys.stdin.read()
    hub.shutdown()
    hub.server_close()
    thread.join()


if __name__ == "__main__":
    main()
