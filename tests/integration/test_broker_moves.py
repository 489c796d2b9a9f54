"""A host gets another address: the broker's is found again by its name, and a node says where it is now, or both do."""

from tests.integration.conftest import until
from tests.integration.host_pools import POOL_NAME, made_site

#: It goes on for some seconds, since its broker is looked for by turns.
PRINTS = "%%gpu\nimport time\nfor i in range(15): print('line', i, flush=True); time.sleep(1)\nresult = i"


def test_a_cell_goes_on_while_the_brokers_host_and_then_its_own_get_another_address() -> None:
    with made_site(("node1",), host=POOL_NAME) as site:
        notebook = site.open_notebook("bob", on="node1")
        message = notebook.start_until(PRINTS, "line 2")
        site.hosts["hub"].readdress("10.77.0.2")
        site.names.write_text(f"127.0.0.1 localhost\n10.77.0.2 {POOL_NAME}\n")
        site.broker.terminate()
        site.broker.wait()
        site.start_broker()
        notebook.wait_until("The pool's broker was restarted; your cell goes on.")
        ran = notebook.collect(message)
        assert ran.error is None, ran.shown
        assert notebook.value("result") == "14"
        until(lambda: "node1  cpu-0  CPU slot: hot (bob)" in site.status(), "the node and its session at the broker")
        notebook.run("%gpu stop")
        assert notebook.run("%%gpu\nprint(result + 1)").stream() == "15\n", "asked of the broker anew"

        message = notebook.start_until(PRINTS.replace("15", "6"), "line 2")
        site.hosts["node1"].readdress("10.77.0.21")
        site.hosts["hub"].readdress("10.77.0.3")
        site.names.write_text(f"127.0.0.1 localhost\n10.77.0.3 {POOL_NAME}\n")
        ran = notebook.collect(message)
        assert ran.error is None, ran.shown
        assert ran.stream() == "".join(f"line {i}\n" for i in range(3, 6)), "and three before"
        site.until_said("node1", "told=tcp://10.77.0.21:9003")
        assert "node1  cpu-0  CPU slot: hot (bob)" in site.status()
        notebook.run("%gpu stop")
        assert notebook.run("%%gpu\nprint(result + 2)").stream() == "7\n", "by the address that it has now"
