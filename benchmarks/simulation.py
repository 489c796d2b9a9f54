"""The figures of docs/explanation/simulation.md: `python benchmarks/simulation.py`. The same on every machine."""

from gpu_worker.simulator.run_report import RunReport, simulate, smallest
from gpu_worker.simulator.simulated_nodes import Delays
from gpu_worker.simulator.simulated_pool import divide_gpus
from gpu_worker.simulator.workloads import generate

SHARE, NODES = 0.9, 8


def percent(*parts: float) -> str:
    return " | ".join(f"{part:.1%}" for part in parts)


def main() -> None:
    first: RunReport | None = None
    print("| seed | fewest GPUs | at once | 99% wait, s | longest, s | per notebook | GPUs saved | GPU-hours saved |")
    for seed in range(1, 6):
        found = smallest(generate("course", seed), SHARE, NODES, 100)
        first = first or found
        print(f"| {seed} | {found.gpus} | {percent(found.waits.at_once)}", end=" | ")
        print(f"{found.waits.p99_ms / 1000:.0f} | {found.waits.max_ms / 1000:.0f} | {found.reserved_gpus}", end=" | ")
        print(percent(found.saved_gpus, found.saved_hours), "|")
    assert first is not None
    week = generate("course", 1)
    fewer = simulate(week, divide_gpus(first.gpus - 1, NODES))
    print(f"with {fewer.gpus} GPUs: {percent(fewer.waits.at_once)}")
    print(f"saved if hot sessions count too: {percent(first.saved_hours_strictly)}")
    print(f"GPU-hours: {first.cell_gpu_hours:.0f} for cells of {first.reserved_gpu_hours:.0f}")
    for gpus in (40, 45, 51, 60, 80):
        runs = [simulate(week, divide_gpus(gpus, NODES), None, Delays(evict_ms=evict_ms)) for evict_ms in (500, 2000)]
        print(f"| {gpus} | {percent(*(part for one in runs for part in (one.waits.at_once, one.waited_for_nobody)))} |")
    mixed = smallest(generate("mix", 1), SHARE, NODES, 100)
    print(
        f"mix: {mixed.gpus} GPUs of {mixed.reserved_gpus}, {percent(mixed.waits.at_once, mixed.saved_gpus)};", end=" "
    )
    print(f"{mixed.cell_gpu_hours:.0f} GPU-hours of {mixed.reserved_gpu_hours:.0f}, {percent(mixed.saved_hours)}")


if __name__ == "__main__":
    main()
