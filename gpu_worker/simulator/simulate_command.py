"""`bulletin simulate`: a trace or a made-up week, one pool or two side by side, and what it comes to."""

import sys
import time
from pathlib import Path

import msgspec
from traitlets import Bool, Float, Int, Unicode
from traitlets.config import Application, catch_config_error

from bulletin import __version__
from bulletin.errors import BadConfig, InvariantBroken
from bulletin.units import HOUR_MS
from gpu_worker.scheduler import journal
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from gpu_worker.simulator import replay, report_text, traces
from gpu_worker.simulator.pool_size import Play, find_fewest_at_once
from gpu_worker.simulator.run_report import RunReport, read_settings, simulate
from gpu_worker.simulator.simulated_nodes import Delays, NodeFault
from gpu_worker.simulator.simulated_pool import divide_gpus
from gpu_worker.simulator.variations import with_long_cells
from gpu_worker.simulator.workloads import WORKLOADS, generate
from gpu_worker.unknown_settings import require_typed


class SimulateCommand(Application):
    """`bulletin simulate`: play a trace against the scheduler under a virtual clock, or a journal again, and print."""

    name = "bulletin-simulate"
    version = __version__
    description = "Play a trace, or a made-up week, against the pool's own scheduler in virtual time, and report waits."
    #: The exit status, set by `start`.
    status = 0

    generate = Unicode(
        "", help=f"Make up a week instead of reading a trace: {', '.join(WORKLOADS)}. Example: course"
    ).tag(config=True)
    seed = Int(1, help="Of the made-up week: the same seed gives the same week.").tag(config=True)
    people = Int(0, help="How many people the made-up week has. 0: as many as is usual for it. Example: 200").tag(
        config=True
    )
    ledger = Unicode(
        "", help="Play what the ledger at this URL has recorded. Example: sqlite:////srv/bulletin/ledger.db"
    ).tag(config=True)
    gpus = Int(60, min=1, help="How many GPUs the pool has; with --at-once, how many at most.").tag(config=True)
    nodes = Int(8, min=1, help="On how many nodes they are, as evenly as can be.").tag(config=True)
    settings_file = Unicode("", help="A quota file, or settings of the scheduler as JSON. Empty: the defaults.").tag(
        config=True
    )
    compare = Unicode("", help="Other settings of the scheduler, for a second column.").tag(config=True)
    at_once = Float(
        0.0, min=0, max=1, help="Find the fewest GPUs with which this share of cells starts within 1 s. Example: 0.9"
    ).tag(config=True)
    start_delay = Float(0.2, min=0, help="Seconds from a grant until the executor is up.").tag(config=True)
    state_delay = Float(0.0, min=0, help="Seconds after that until the cell's variables have travelled.").tag(
        config=True
    )
    model_delay = Float(0.0, min=0, help="Seconds after that until what the cell needs is on the GPU again.").tag(
        config=True
    )
    evict_delay = Float(0.5, min=0, help="Seconds that a hot session takes to leave its GPUs.").tag(config=True)
    long_cells = Float(
        0.0,
        min=0,
        max=1,
        help="Let this share of the cells run for an hour, in QoS batch with a walltime of two. Example: 0.05",
    ).tag(config=True)
    lost_node = Float(
        -1.0, help="Hours from the start of the trace until the first node is lost, for good. Below 0: none is."
    ).tag(config=True)
    save_trace = Unicode("", help="Write the trace to this file. Example: week.jsonl").tag(config=True)
    figure = Unicode("", help="Draw the report into this SVG file; needs matplotlib. Example: week.svg").tag(
        config=True
    )
    journal = Unicode(
        "",
        help="Play a pool's journal (Pool.journal_file) again instead, and print what was decided. "
        "Example: journal.jsonl",
    ).tag(config=True)
    is_checked = Bool(
        False, help="With --journal: compute every promise of the scheduler afresh after each event. Slow."
    ).tag(config=True)
    as_json = Bool(False, help="Print the report as JSON.").tag(config=True)
    aliases = {
        "generate": "SimulateCommand.generate",
        "seed": "SimulateCommand.seed",
        "people": "SimulateCommand.people",
        "ledger": "SimulateCommand.ledger",
        "gpus": "SimulateCommand.gpus",
        "nodes": "SimulateCommand.nodes",
        "config": "SimulateCommand.settings_file",
        "compare": "SimulateCommand.compare",
        "at-once": "SimulateCommand.at_once",
        "start-delay": "SimulateCommand.start_delay",
        "evict-delay": "SimulateCommand.evict_delay",
        "state-delay": "SimulateCommand.state_delay",
        "model-delay": "SimulateCommand.model_delay",
        "long-cells": "SimulateCommand.long_cells",
        "lost-node": "SimulateCommand.lost_node",
        "save-trace": "SimulateCommand.save_trace",
        "figure": "SimulateCommand.figure",
        "journal": "SimulateCommand.journal",
    }
    flags = {
        "json": ({"SimulateCommand": {"as_json": True}}, "Print the report as JSON."),
        "check": (
            {"SimulateCommand": {"is_checked": True}},
            "With --journal: judge each step. Exit status 1 is a promise that did not hold.",
        ),
    }
    examples = (
        "bulletin simulate --generate course --seed 1 --gpus 60 --nodes 8\n"
        "bulletin simulate week.jsonl --gpus 40 --config now.toml --compare then.toml\n"
        "bulletin simulate --generate course --seed 1 --gpus 200 --at-once 0.9\n"
        "bulletin simulate --journal journal.jsonl --check"
    )

    @catch_config_error
    def initialize(self, argv: list[str] | None = None) -> None:
        """Read the command line."""
        super().initialize(argv)
        require_typed(self.cli_config, [type(self)], [*self.aliases, *self.flags])

    def start(self) -> None:
        """Simulate, or play a journal again, and print. `status` is 1 where a promise of the journal did not hold."""
        if self.journal:
            self._replay(Path(self.journal))
            return
        if self.nodes > self.gpus:
            raise BadConfig(f"{self.gpus} GPUs are not enough for {self.nodes} nodes. Give fewer nodes with --nodes.")
        trace = self._find_trace()
        if self.long_cells:
            trace = with_long_cells(trace, self.long_cells, HOUR_MS, 2 * HOUR_MS, "batch")
        if self.save_trace:
            traces.write(trace, Path(self.save_trace))
        files = [self.settings_file, self.compare] if self.compare else [self.settings_file]
        groups = {notebook.project for notebook in trace.notebooks}
        settings = [read_settings(Path(file), groups) if file else None for file in files]
        began_s = time.perf_counter()
        plays = [self._play(trace, one) for one in settings]
        if self.at_once:
            reports = [find_fewest_at_once(play, self.at_once, self.gpus) for play in plays]
        else:
            reports = [play(self.gpus) for play in plays]
        took_s = time.perf_counter() - began_s
        names = [Path(file).stem if file else "defaults" for file in files]
        if self.figure:
            from gpu_worker.simulator.figure import draw

            draw(names, reports, Path(self.figure))
        if self.as_json:
            sys.stdout.write(_json(trace, names, reports))
            return
        origin = trace.origin
        made = f", seed {origin.seed}, {origin.people} people, version {origin.version}" if origin.version else ""
        lines = [f"{origin.made_by}{made}: {len(trace.notebooks)} notebooks; a simulation, in {took_s:.1f} s", ""]
        sys.stdout.write("\n".join(lines + report_text.pages(names, reports)) + "\n")

    def _play(self, trace: traces.Trace, settings: SchedulerSettings | None) -> Play:
        """Return what plays the trace under these settings on a number of GPUs."""
        delays = Delays(
            start_ms=_ms(self.start_delay),
            state_ms=_ms(self.state_delay),
            model_ms=_ms(self.model_delay),
            evict_ms=_ms(self.evict_delay),
        )
        faults = [NodeFault(0, round(self.lost_node * HOUR_MS))] if self.lost_node >= 0 else []
        return lambda gpus: simulate(trace, divide_gpus(gpus, self.nodes), settings, delays, faults=faults)

    def _replay(self, path: Path) -> None:
        """Play a journal again; print each decision, then what they come to."""
        if self.generate or self.ledger or self.extra_args:
            raise BadConfig("Give --journal alone, or one trace: a file, --generate WORKLOAD or --ledger URL.")
        totals = replay.ReplayTotals()
        try:
            file = path.open("rb")
        except OSError as error:
            raise BadConfig(f"The journal {path} cannot be read: {error.strerror}.") from None
        with file:
            try:
                lines = journal.decode(file, str(path))
                for decision in replay.replay_decisions(lines, totals, is_checked=self.is_checked):
                    sys.stdout.write(replay.show_decision(decision) + "\n")
            except InvariantBroken as broken:
                sys.stderr.write(f"{path}, {broken}\n")
                self.status = 1
                return
        sys.stdout.write("\n".join(["", *replay.summary(totals, is_checked=self.is_checked)]) + "\n")

    def _find_trace(self) -> traces.Trace:
        """Read or make up the one trace that was asked for. Raises BadConfig."""
        ways = [bool(self.generate), bool(self.ledger), bool(self.extra_args)]
        if sum(ways) != 1 or len(self.extra_args) > 1:
            raise BadConfig("Give one trace: a file, --generate WORKLOAD or --ledger URL.")
        if self.generate:
            return generate(self.generate, self.seed, self.people or None)
        if self.ledger:
            from gpu_worker.broker.ledger import Ledger

            with Ledger.open(self.ledger) as ledger:
                return traces.trace_of_ledger(ledger.cells(limit=10_000_000))
        return traces.read(Path(self.extra_args[0]))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _json(trace: traces.Trace, names: list[str], reports: list[RunReport]) -> str:
    runs = [{"name": name, **msgspec.structs.asdict(one)} for name, one in zip(names, reports, strict=True)]
    found = msgspec.json.encode({"trace": trace.origin, "runs": runs})
    return msgspec.json.format(found).decode() + "\n"
