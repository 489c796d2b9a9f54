"""What it costs to train a network in `%%gpu` cells rather than in plain ones: ResNet-18 on data of CIFAR-10's shape.

    python -m benchmarks.training [--rounds N] [--steps N] [--only PLACE ...] [--json FILE]

In each round a plain cell trains for some steps, a `%%gpu` cell does with data that is new in each cell and so travels
(*inline*), and one does with data that the session has already (*resident*). The trained network and its optimizer come
back each time. The pool is on the notebook's host; on another one (a namespace of the network: it needs root); and on
another one behind a link of 1 Gbit/s with a round trip of 20 ms. Medians in seconds; times the plain cell of the same
round; and what resident and inline cells take beside their steps. It needs torch, whose threads are as many everywhere;
without a GPU all of it is computed on the same cores.
"""

import argparse
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.slow_link import slow_link
from tests.integration.conftest import Notebook, PoolProcess
from tests.integration.host_pools import made_site

BITS_PER_S, ROUND_TRIP_S = 1e9, 0.020
#: ResNet-18 with the stem for small pictures: 11.2 million parameters, and as many numbers of momentum.
NETWORK = """
import torch, time
from torch import nn

class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
        self.skip = nn.Identity() if before == after else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
    def forward(self, x):
        y = self.norms[1](self.second(torch.relu(self.norms[0](self.first(x)))))
        return torch.relu(y + self.skip(x))

def resnet18():
    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    widths += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    return nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        *(Block(*width) for width in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))

def train(model, optimizer, images, labels, steps, size):
    torch.set_num_threads(threads)
    began = time.perf_counter()
    for step in range(steps):
        batch = slice(step * size, (step + 1) * size)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
    return loss.item(), time.perf_counter() - began

def fresh():
    torch.manual_seed(0)
    model = resnet18()
    return model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
"""
DATA = "images, labels = torch.randn({pictures}, 3, 32, 32), torch.randint(10, ({pictures},))"
TRAIN = "loss, computed_s = train({name}, {name}_optimizer, images, labels, {steps}, {size})"


class Bench:
    """A notebook on a pool, which trains."""

    def __init__(self, notebook: Notebook, steps: int, size: int, pictures: int, threads: int) -> None:
        self._notebook, self._steps, self._size = notebook, steps, size
        self._data = DATA.format(pictures=pictures)
        self.run(f"{NETWORK}\nthreads = {threads}\n{self._data}")
        for name in ("plain", "inline", "resident"):
            self.run(f"{name}, {name}_optimizer = fresh()")
        for name in ("plain", "inline", "resident"):  # both sides have torch, and momentum, after that
            self.train(name)

    def run(self, code: str) -> float:
        """Run a cell; how many seconds it took."""
        began = time.perf_counter()
        output = self._notebook.run(code)
        assert output.error is None, output.shown
        return time.perf_counter() - began

    def train(self, name: str) -> tuple[float, float]:
        """Train the network of this name: how long the cell took, and of that its own steps."""
        code = TRAIN.format(name=name, steps=self._steps, size=self._size)
        took_s = self.run(code if name == "plain" else f"%%gpu\n{code}")
        return took_s, float(self._notebook.value("computed_s"))

    def round(self) -> dict[str, tuple[float, float]]:
        """Train once in each way."""
        found = {"plain": self.train("plain")}
        found["resident"] = self.train("resident")
        self.run(self._data)
        found["inline"] = self.train("inline")
        return found

    def sizes(self) -> str:
        """How much there is."""
        return self._notebook.value(
            "f'data {images.nbytes / 1e6:.0f} MB,"
            " network {sum(v.nbytes for v in plain.state_dict().values()) / 1e6:.0f} MB, as much momentum,"
            " threads: {threads}, torch {torch.__version__}'"
        )


@contextlib.contextmanager
def same_host() -> Iterator[Notebook]:
    """Make a pool on the notebook's host."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pool = PoolProcess(folder / "pool", "--slots", "1", "--Pool.preload=torch")
        stack.callback(pool.stop)
        notebook = Notebook({"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json")}, folder)
        stack.callback(notebook.close)
        yield notebook


@contextlib.contextmanager
def other_host() -> Iterator[Notebook]:
    """Make a pool whose node is another host."""
    with made_site(("node1",)) as site:
        yield site.open_notebook("alice")


@contextlib.contextmanager
def slow_host() -> Iterator[Notebook]:
    """Make a pool whose node is another host, behind a slow link."""
    with made_site(("node1",)) as site, slow_link(site.hosts["hub"], site.hosts["node1"], BITS_PER_S, ROUND_TRIP_S):
        yield site.open_notebook("alice")


PLACES: dict[str, Callable[[], contextlib.AbstractContextManager[Notebook]]] = {
    "same host": same_host,
    "another host": other_host,
    "another host, 1 Gbit/s and 20 ms": slow_host,
}


def measure(place: str, rounds: int, *sizes: int) -> dict[str, list[tuple[float, float]]]:
    """Train in each way, in turn, on a pool at this place."""
    with PLACES[place]() as notebook:
        bench = Bench(notebook, *sizes)
        print(f"{place}: {bench.sizes()}", flush=True)
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(rounds):
            for way, taken in bench.round().items():
                found.setdefault(way, []).append(taken)
                print(f"  {way}: {taken[0]:.2f} s, {taken[1]:.2f} s of them its steps", flush=True)
        return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--size", type=int, default=16, help="pictures in a step")
    parser.add_argument("--pictures", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=1, help="on busy cores, more of them wait for each other")
    parser.add_argument("--only", choices=PLACES, nargs="*", default=list(PLACES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = (options.steps, options.size, options.pictures, options.threads)
    results = {place: measure(place, options.rounds, *sizes) for place in options.only}
    columns = ("the pool is on", "plain, s", "resident, s", "inline, s", "resident / plain", "inline / plain")
    print("|", " | ".join((*columns, "beside the steps, s")), "|")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for place, ways in results.items():
        took = {way: statistics.median(took for took, _ in taken) for way, taken in ways.items()}
        ratio = {
            way: statistics.median(one[0] / plain[0] for one, plain in zip(taken, ways["plain"], strict=True))
            for way, taken in ways.items()
        }
        beside = {way: statistics.median(took - steps for took, steps in taken) for way, taken in ways.items()}
        print(
            f"| {place} | {took['plain']:.1f} | {took['resident']:.1f} | {took['inline']:.1f}"
            f" | {ratio['resident']:.2f} | {ratio['inline']:.2f}"
            f" | {beside['resident']:.1f} and {beside['inline']:.1f} |"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
