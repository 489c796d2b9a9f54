"""`bulletin doctor` at a real hub: the pool's token is another, or may not ask what the pool asks."""

from pathlib import Path

from tests.acceptance.hub import Hub
from tests.integration.examining import examine


def test_the_hub_does_not_know_the_token_or_does_not_let_it_ask(hub: Hub, tmp_path: Path) -> None:
    words = ("--folder", tmp_path / "pool", "--Pool.isolation=shared")
    url = {"JUPYTERHUB_API_URL": f"{hub.address}/hub/api"}
    examined = examine(*words, **url, JUPYTERHUB_API_TOKEN="x" * 32)
    assert "Give configure() the same token" in examined.says("token-unknown")
    hub.start_server("ada")
    token = hub.token_of("ada")
    examined = examine(*words, **url, JUPYTERHUB_API_TOKEN=token)
    assert "read:users:name, read:users:groups" in examined.says("service-scopes")
    assert token not in str(examined.found)


def test_of_a_hub_that_runs_with_its_pool_nothing_is_wrong(hub: Hub) -> None:
    examined = examine("--folder", hub.run / "pool", "--Pool.isolation=shared")
    assert examined.wrong == []
