"""Who listens by weak references goes on listening: to signals of blinker, and to the end of an object."""

import pytest

from tests.state.notebook import Notebook


@pytest.fixture
def signals(notebook: Notebook) -> Notebook:
    pytest.importorskip("blinker")
    notebook.local(
        "import blinker\nheard, signal = [], blinker.Signal()\nclass Sender: pass\none, other = Sender(), Sender()\n"
        "class Listener:\n    def hear(self, sender, n): heard.append((type(sender).__name__, n))\n"
        "listener = Listener()\ndef hear(sender, n): heard.append(n)"
    )
    return notebook


@pytest.mark.parametrize("receiver", ["hear", "listener.hear"])
def test_a_receiver_is_connected_and_disconnected_on_either_side(signals: Notebook, receiver: str) -> None:
    signals.gpu(f"signal.connect({receiver}, sender=one)")
    signals.local("signal.send(one, n=1); signal.send(other, n=2)")
    signals.gpu("signal.send(one, n=3); signal.send(other, n=4)")
    assert signals.local("[entry if type(entry) is int else entry[1] for entry in heard]") == [1, 3]
    signals.gpu(f"signal.disconnect({receiver}, sender=one)")
    signals.local("signal.send(one, n=5)")
    assert signals.local("len(heard), bool(signal.receivers)") == (2, False)


def test_a_signal_keeps_what_else_it_has_and_whom_it_holds(signals: Notebook) -> None:
    signals.gpu("signal.connect(lambda sender, n: heard.append(-n), weak=False); signal.topic = heard; same = signal")
    signals.local("signal.send('text', n=1)")
    assert signals.local("heard, signal.topic is heard, same is signal") == ([-1], True, True)


def test_the_callback_of_a_weak_reference_comes_with_it_if_it_is_the_notebooks(notebook: Notebook) -> None:
    notebook.local("import weakref\nclass Part: pass\nended, part = [], Part()")
    notebook.gpu("watch = weakref.ref(part, lambda gone: ended.append(1)); box = [watch]")
    assert notebook.local("watch.__callback__(None), ended, box[0] is watch, watch() is part") == (
        None,
        [1],
        True,
        True,
    )
    notebook.local("watch.__callback__.note = 5; kept = watch")
    assert notebook.gpu("watch.__callback__(None)\nwatch.__callback__.note, ended").extra["result"] == (5, [1, 1])
    assert notebook.local("watch is kept, ended") == (True, [1, 1])
