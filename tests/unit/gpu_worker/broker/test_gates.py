"""What is heard at the broker's sockets: of each connection so much, of each user so much, of agents all."""

from bulletin.codes import RefusalCode
from bulletin.ids import KernelId, RequestId, UserName
from bulletin.wire import frames, messages as wire
from gpu_worker.broker.gates import AgentGate, Gate, KernelGate
from gpu_worker.broker.identity import Person

EVE, OWNER = Person(user=UserName("eve")), Person(user=UserName("me"), is_owner=True)
FIND, PING, SUBMIT = wire.Find(), wire.Ping(), wire.Submit(request=RequestId("r"))
HELLO = wire.Hello(protocol=wire.PROTOCOL, version="1", token="guess", kernel=KernelId("k"))


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def heard(gate: Gate, route: bytes, message: wire.Message, tries: int = 10_000) -> int:
    count, parts = 0, frames.pack(message)
    for _ in range(tries):
        if gate.admits(route, parts):
            gate.charge(route, parts, message)
            count += 1
    return count


def test_a_connection_that_floods_is_told_so_and_others_are_heard() -> None:
    gate = KernelGate({b"eve": EVE, b"me": OWNER}.get, Clock())
    assert heard(gate, b"eve", FIND) < 100
    refusal = gate.take_refusal(b"eve", frames.pack(FIND))
    assert refusal is not None
    assert refusal.code is RefusalCode.TOO_FAST
    assert refusal.sentence.startswith("This notebook asks more at once than the pool listens to")
    assert gate.take_refusal(b"eve", frames.pack(FIND)) is None, "once a second"
    assert heard(gate, b"me", SUBMIT, 50) == 50


def test_guesses_of_one_connection_are_few() -> None:
    gate = KernelGate({}.get, Clock())
    assert heard(gate, b"outsider", HELLO) < 50
    assert gate.take_refusal(b"outsider", frames.pack(HELLO)) is None, "nobody knows them"


def test_all_connections_of_a_user_count_together() -> None:
    routes = [f"eve-{number}".encode() for number in range(100)]
    gate = KernelGate(dict.fromkeys(routes, EVE).get, Clock())
    assert sum(heard(gate, route, FIND) for route in routes) < 400
    refusal = gate.take_refusal(routes[-1], frames.pack(FIND))
    assert refusal is not None
    assert refusal.sentence.startswith("Your notebooks together ask")


def test_pings_that_come_all_at_once_after_a_pause_cost_nothing_but_themselves() -> None:
    gate = KernelGate({b"eve": EVE}.get, Clock())
    assert heard(gate, b"eve", PING) < 100
    assert gate.take_refusal(b"eve", frames.pack(PING)) is None
    assert heard(gate, b"eve", SUBMIT, 50) == 50


def test_an_agent_says_what_it_has_to_and_a_stranger_at_its_socket_little() -> None:
    gate = AgentGate(lambda route: route == b"agent", Clock())
    done = wire.Listed(query="q", cells=())
    assert heard(gate, b"agent", done) == 10_000
    assert heard(gate, b"outsider", done) < 100


def test_a_long_message_counts_as_many() -> None:
    gate, long = KernelGate({b"eve": EVE, b"me": OWNER}.get, Clock()), wire.Ping(counters={"x" * 200: 1})
    short = heard(gate, b"me", long)
    many = wire.Ping(counters={f"{number:0250}": 1 for number in range(250)})
    assert heard(gate, b"eve", many) < short / 10
    assert heard(gate, b"eve", SUBMIT, 50) == 0, "it is heard again when that time is over"
