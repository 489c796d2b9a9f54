// Stacked bars over time, by uPlot; the same as a table for who does not see them.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { showDates, showTicks } from "./ticks";

export interface Series {
  name: string;
  values: number[];
  /** The custom property of style.css that has its colour, and how its bars are drawn. */
  colour: string;
  kind: "bar" | "line" | "lent";
}

/** Draw bars upon each other, lines across, and what was lent below the axis. Sizes itself to where it is. */
export function Chart(props: { label: string; times: number[]; series: Series[]; unit: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element || props.times.length === 0) return;
    const draw = () => {
      element.replaceChildren();
      return new uPlot(options(element, props), data(props), element);
    };
    let plot = draw();
    const resized = new ResizeObserver(() => {
      if (element.clientWidth !== plot.width) plot.setSize({ width: element.clientWidth, height: plot.height });
    });
    resized.observe(element);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => {
      plot.destroy();
      plot = draw();
    };
    dark.addEventListener("change", redraw);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", redraw);
      plot.destroy();
    };
  }, [props.label, JSON.stringify(props.times), JSON.stringify(props.series)]);
  return <div class="chart" ref={place} role="img" aria-label={props.label} />;
}

/** How wide the axis is, in pixels, for what is written at it. */
function widthOf(_plot: uPlot, texts: string[] | null): number {
  const longest = Math.max(0, ...(texts ?? []).map((one) => one.length));
  return Math.max(44, 16 + 7 * longest);
}

/** Sum the bars upwards: each is drawn from 0, the tallest first. */
function data(props: { times: number[]; series: Series[] }): uPlot.AlignedData {
  const bars = props.series.filter((one) => one.kind === "bar");
  const stacked = bars.map((_, place) => props.times.map((_, at) => bars.slice(0, place + 1).reduce((sum, one) => sum + (one.values[at] ?? 0), 0)));
  const rest = props.series.filter((one) => one.kind !== "bar");
  const values = [...stacked.reverse(), ...rest.map((one) => one.values.map((value) => (one.kind === "lent" ? -value : value)))];
  return [props.times.map((ms) => ms / 1000), ...values];
}

function options(element: HTMLElement, props: { times: number[]; series: Series[]; unit: string }): uPlot.Options {
  const probe = document.createElement("span");
  element.append(probe);
  const resolved = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color; // what light-dark() comes to
  };
  const bars = uPlot.paths.bars?.({ size: [0.62, 48], align: 1 });
  const steps = uPlot.paths.stepped?.({ align: 1 });
  const shape = (one: Series): uPlot.Series =>
    one.kind === "line"
      ? { label: one.name, stroke: resolved(one.colour), width: 2, dash: [6, 4], points: { show: false }, ...(steps ? { paths: steps } : {}) }
      : { label: one.name, fill: resolved(one.colour), width: 0, points: { show: false }, ...(bars ? { paths: bars } : {}) };
  const stacked = props.series.filter((one) => one.kind === "bar").reverse();
  const rest = props.series.filter((one) => one.kind !== "bar");
  const ink = resolved("--quiet");
  const line = resolved("--line");
  const series = [{}, ...stacked.map(shape), ...rest.map(shape)];
  probe.remove();
  const last = props.times.at(-1) ?? 0;
  const step = (props.times[1] ?? last + 3_600_000) - (props.times[0] ?? 0);
  return {
    width: element.clientWidth,
    height: 240,
    cursor: { show: false },
    legend: { show: false },
    scales: { x: { range: () => [(props.times[0] ?? 0) / 1000, (last + step) / 1000] } },
    axes: [
      { stroke: ink, grid: { show: false }, ticks: { stroke: line, width: 1 }, font: "12px system-ui", values: (_plot, splits, _axis, _space, step) => showDates(splits, step) },
      { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui", size: widthOf, values: (_plot, splits, _axis, _space, step) => showTicks(splits, step) },
    ],
    series,
  };
}
