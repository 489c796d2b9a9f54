"""The example notebooks run as they are on a pool, and come to the same without one."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import PurePath
from typing import Literal

import nbformat
import pytest
from jupyter_core.utils import ensure_event_loop

from tests.integration.conftest import PoolProcess
from tests.notebooks.executing import EXAMPLES, Executed, execute

How = Literal["off", "pool", "on"]
Ran = Callable[..., Future[Executed]]

#: Their values are looked at below.
ASKED = {
    "background_training": {"losses": "losses", "ended": "[train.done(), compare.done()]"},
    "every_cell": {"log": "log.to_dict('list')"},
    "first_cell": {"losses": "losses"},
    "gpu_in_a_class": {
        "history": "experiment.history",
        "kept": "[keeper.best, kept]",
        "copied": "keeper.best_model is not keeper.model",
    },
    "sweep": {"scores": "scores", "unbound": "[n for n in ('C', 'score', 'each', 'kernel') if n in globals()]"},
    "torch/fine_tuning": {"log": "trainer.state.log", "tied": "pretraining.model.decoder.weight is body.words.weight"},
    "torch/image_classifier": {
        "accuracy": "accuracy",
        "losses": "losses",
        "same": "optimizer.param_groups[0]['params'][0] is model.features[0].weight",
    },
}
#: They say nothing of GPUs but for a line or two, and run as well where every cell goes to the pool.
PLAIN = ("torch/fine_tuning", "torch/image_classifier")
CASES = [(name, "pool") for name in sorted(ASKED)] + [(name, "on") for name in PLAIN]


@pytest.fixture(scope="package")
def places(settled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolProcess]:
    """A pool of two CPU slots."""
    process = PoolProcess(tmp_path_factory.mktemp("examples") / "p", "--slots", "2")
    yield process
    process.stop()


@pytest.fixture(scope="package")
def ran(places: PoolProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Run an example, once: on the pool, with every cell there, or with Bulletin switched off, beside the others."""
    begun: dict[tuple[str, How], Future[Executed]] = {}

    def play(name: str, how: How) -> Executed:
        pool = str(places.folder / "connection.json")
        environ = {"BULLETIN": how if how != "pool" else "", "BULLETIN_CONNECTION_FILE": pool}
        try:
            return execute(name, tmp_path_factory.mktemp(f"{PurePath(name).name}-{how}"), environ, ASKED[name])
        finally:
            ensure_event_loop().close()  # nbclient makes one for each thread

    def run(name: str, how: How = "pool") -> Future[Executed]:
        if name.startswith("torch/"):
            pytest.importorskip("torch")
        if (name, how) not in begun:
            begun[name, how] = (beside if how == "off" else first).submit(play, name, how)
        return begun[name, how]

    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as beside:
        yield run


def test_each_example_is_looked_at_and_stored_without_outputs() -> None:
    notebooks = {
        str(path.relative_to(EXAMPLES).with_suffix("")): nbformat.read(path, as_version=4)
        for path in EXAMPLES.rglob("*.ipynb")
    }
    assert sorted(notebooks) == sorted(ASKED)
    for name, notebook in notebooks.items():
        nbformat.validate(notebook)
        assert [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")] == [], name


@pytest.mark.parametrize(("name", "how"), CASES)
def test_an_example_comes_to_the_same_without_a_pool(name: str, how: How, ran: Ran) -> None:
    begun = ran(name, "off")
    there, here = ran(name, how).result(), begun.result()
    assert there.values == here.values
    for one, other in zip(there.cells, here.cells, strict=True):
        if "print(train)" not in one.source:  # where it is differs
            assert one.own == other.own, one.source
    assert _compared(there) == _compared(here)


def _compared(executed: Executed) -> dict[str, str]:
    """What is left, but for seeds that nobody has set, graphs, which stay there, and Bulletin's own objects."""
    own = ("train", "compare", "handle", "Out", "_", "@random", "@numpy.random", "loss")
    return {path: text for path, text in executed.left.items() if not path.startswith(own)}


def test_a_classifier_learns_on_the_pool_and_is_used_in_the_notebook(ran: Ran) -> None:
    executed = ran("torch/image_classifier").result()
    assert executed.values["same"] is True
    assert executed.values["accuracy"] > 0.85
    assert executed.values["losses"] == sorted(executed.values["losses"], reverse=True)
    trained = executed.under("for epoch in tqdm")
    assert "training: 100%" in trained.stderr
    receipts = [note for note in trained.notes if note.startswith("ran ")]  # none where the machine is fast
    assert all("on a CPU slot" in note for note in receipts)
    for words in ("plt.subplots", "plt.plot(losses", "confusion"):
        assert len(executed.under(words).pictures) == 1
    assert "here, the model is on: cpu" in executed.under("mine = draw").stdout
    assert executed.under("torch.save").result == "True"


def test_a_trainer_with_callbacks_cache_and_checkpoints_runs_as_on_colab(ran: Ran) -> None:
    executed = ran("torch/fine_tuning").result()
    assert executed.values["tied"] is True
    assert executed.values["log"][-1]["eval_accuracy"] > 0.95
    assert "every cell runs on the pool" in executed.under("%gpu on").notes[0]
    assert "tokenize: 700 rows from cache/" in executed.under("train_set, eval_set = ").stdout
    for words, text in (("def tokenize", "tokenize"), ("pretraining =", "pretrained"), ("trainer =", "fine-tuned")):
        (bar,) = [one["data"] for one in executed.under(words).outputs if "widget-view" in str(one.get("data"))]
        assert bar["text/plain"].startswith(text)
    assert len(executed.under("trainer.state.log).set_index").pictures) == 1
    answers = executed.under("best = ForClassification").result or ""
    assert [word for word in answers.replace("'", " ").split() if word in {"good", "bad"}] == ["good", "bad", "good"]


def test_a_notebook_that_says_nothing_of_gpus_trains_on_the_pool_under_one_line(ran: Ran) -> None:
    executed = ran("every_cell").result()
    assert executed.values["log"]["accuracy"][-1] == 1
    assert "every cell runs on the pool" in executed.under("%gpu on").notes[0]
    training = executed.under("network =")
    (bar,) = [one["data"] for one in training.outputs if "widget-view" in str(one.get("data"))]
    assert bar["text/plain"].startswith("training")
    assert len(executed.under("log.plot").pictures) == 1
    answers = executed.under("def classify").result or ""
    assert [word for word in answers.split() if word in {"good", "bad"}] == ["good", "bad", "good"]


def test_a_sweep_has_its_values_in_order_and_goes_on_past_an_error(ran: Ran) -> None:
    executed = ran("sweep").result()
    assert executed.values["unbound"] == []
    assert len(executed.values["scores"]) == 12
    assert max(executed.values["scores"]) > 0.97
    assert "12 of 12 done" in executed.under("--each params").notes[0]
    bar, failed = executed.under("--each more").notes
    assert "3 of 3 done, 1 failed" in bar
    assert failed.startswith("1 of 3 elements failed; at first number 1: InvalidParameterError")
    assert "6 of 6 done" in executed.under("def test_score").notes[0]


def test_a_background_cell_draws_its_curve_while_the_notebook_goes_on(ran: Ran) -> None:
    executed = ran("background_training").result()
    assert executed.values["ended"] == [True, True]
    assert executed.values["losses"][-1] < 0.1
    train = executed.under("--background train")
    assert len(train.pictures) == 1
    assert train.stdout.startswith("400 epochs, loss 0.0")
    assert any(note.startswith("train: ✓ ran") for note in train.notes)
    assert executed.under("train.result()").notes == []
    (aside,) = executed.under("compare.result()").notes
    assert aside.startswith("best was changed in the notebook while compare ran")
    assert executed.under("compare.result()").stdout == "here: whatever I say\nthere: the larger network\n"


def test_blocks_in_methods_change_what_the_object_holds(ran: Ran) -> None:
    executed = ran("gpu_in_a_class").result()
    assert executed.values["copied"] is True
    assert executed.values["kept"][0] == executed.values["kept"][1]
    assert 1 < len(executed.values["history"]) < 10
    *rounds, last = executed.under("class Experiment").stdout.splitlines()
    assert last == f"good enough after {len(executed.values['history'])} rounds"
    assert [line.split(":")[0] for line in rounds] == [f"round {n}" for n in range(1, len(rounds) + 1)]
    assert len(executed.under("experiment.predict(inputs)").pictures) == 1
    assert executed.under("class KeepsBest").stdout.startswith("round 1: ")
    assert executed.under("rounds_done = 0").stdout == "that was enough after 3 rounds\n"


def test_the_first_cell_trains_and_draws(ran: Ran) -> None:
    executed = ran("first_cell").result()
    assert len(executed.values["losses"]) == 25
    assert len(executed.under("%%gpu").pictures) == 1
    (bar,) = [one["data"] for one in executed.under("%%gpu").outputs if "widget-view" in str(one.get("data"))]
    assert bar["text/plain"].startswith("training")
