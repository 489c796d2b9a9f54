"""Reports as a picture: waits, and GPUs in use over time. Needs matplotlib, which the pool does not."""

from collections.abc import Sequence
from pathlib import Path

from bulletin.errors import BadConfig
from bulletin.units import show_duration
from gpu_worker.simulator.run_report import RunReport
from gpu_worker.simulator.waits import EDGES_MS

_HALF_HOURS_A_DAY = 48


def draw(names: Sequence[str], reports: Sequence[RunReport], path: Path) -> None:
    """Write an SVG with one row of two plots for each report; equal reports are equal pictures.

    Raises
    ------
    BadConfig
        If matplotlib is not installed, or the file cannot be written.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise BadConfig("A figure needs matplotlib: pip install matplotlib. Without it, leave out --figure.") from None
    with mpl.rc_context({"svg.hashsalt": "bulletin", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(11, 2.9 * len(reports)), layout="constrained")
        rows = figure.subplots(len(reports), 2, squeeze=False, width_ratios=(1, 2))
        edges = [show_duration(edge_ms) for edge_ms in EDGES_MS]
        for name, one, (waits, use) in zip(names, reports, rows, strict=True):
            waits.barh([f"up to {edge}" for edge in edges] + [f"over {edges[-1]}"], one.histogram, color="tab:blue")
            waits.set_xscale("symlog")
            waits.invert_yaxis()
            waits.set_xlabel("cells, by their wait")
            waits.set_title(f"{name}: {one.waits.at_once:.1%} start within {show_duration(EDGES_MS[0])}", loc="left")
            days = [at / _HALF_HOURS_A_DAY + 1 for at in range(len(one.gpus_in_use))]
            use.stackplot(
                days,
                one.gpus_in_use,
                [leased - used for leased, used in zip(one.gpus_leased, one.gpus_in_use, strict=True)],
                labels=("run cells", "hot: anybody may take them"),
                colors=("tab:blue", "#c6d8ea"),
                step="post",
            )
            use.axhline(one.gpus, color="black", linewidth=0.8)
            use.set_xlabel("day")
            use.set_ylabel("GPUs")
            use.legend(loc="upper center", ncols=2, frameon=False)
            use.set_ylim(0, one.gpus * 1.25)
            use.set_title(f"{one.gpus} GPUs; one per open notebook would be {one.reserved_gpus}", loc="left")
        try:
            figure.savefig(path, format="svg", metadata={"Date": None})
        except OSError as error:
            raise BadConfig(f"The figure {path} cannot be written: {error.strerror}.") from None
