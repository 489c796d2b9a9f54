"""The source of a call of ours: it finds the function where it runs, and leaves no name there."""

from bulletin.state.reducers.widgets import deliver_view_message
from bulletin.state.untransferable import reasons
from bulletin_magic.running.remote_call import source_of_call


def test_the_call_gives_what_the_function_gives_and_binds_nothing() -> None:
    namespace = {"number": 1, "numbers": (number for number in range(3))}
    names = set(namespace)
    found = eval(source_of_call(reasons, ["{'number': number, 'numbers': numbers}"]), namespace)
    assert [(stayed.name, stayed.kind) for stayed in found] == [("numbers", "generator")]
    assert set(namespace) - names == {"__builtins__"}


def test_arguments_are_expressions_of_the_place_where_it_runs() -> None:
    source = source_of_call(deliver_view_message, ["message", "*others"])
    assert source.endswith(".deliver_view_message(message, *others)")
