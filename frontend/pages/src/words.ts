// Numbers as people read them: the same words as everywhere else in Bulletin (bulletin/units.py).

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Write a duration: "80 ms", "4.2 s", "12 min", "3 h", "7.5 days". */
export function showDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < 2 * MINUTE) return `${Math.floor(ms / 1000)} s`;
  if (ms < 2 * HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor((ms * 10) / DAY) / 10} days`;
}

/** Write a duration that a page shows again and again: in whole seconds, so that it is calm. */
export function showAge(ms: number): string {
  return ms < 10_000 ? `${Math.floor(ms / 1000)} s` : showDuration(ms);
}

/** Write bytes: three digits at most, powers of 1000. */
export function showSize(bytes: number): string {
  let size = bytes;
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (size < 1000) return `${unit === "B" || size >= 100 ? Math.round(size) : Number(size.toPrecision(3))}\u00a0${unit}`;
    size /= 1000;
  }
  return `${Number(size.toPrecision(3))}\u00a0TB`;
}

/** Write slot time: "12.5 GPU-hours". */
export function showHours(slotMs: number, word = ""): string {
  const hours = slotMs / HOUR;
  const text = hours === 0 ? "0" : hours < 0.1 ? "< 0.1" : hours < 100 ? hours.toFixed(1) : hours.toFixed(0);
  return word ? `${text} ${word}-hours` : text;
}

/** Write thousandths of a slot: "1.5". */
export function showMilli(milli: number): string {
  return String(Math.round(milli / 10) / 100);
}

/** Why a guarantee is scaled down. */
export const WHY_SCALED = "all guarantees together are more than it has";

/** Say what of a guarantee the pool can keep now, where all are guaranteed more than it has. */
export function sayScaled(guaranteedMilli: number): string {
  return `The pool can keep ${showMilli(guaranteedMilli)} of it now`;
}

/** Say whether a node is drained, or is to be, and why; empty where it is given cells. */
export function describeDrain(node: { is_drained: boolean; drains_in_ms: number | null; why_drained: string }): string {
  if (!node.is_drained && node.drains_in_ms === null) return "";
  const when = node.is_drained || node.drains_in_ms === null ? "drained" : `drained from ${showMoment(node.drains_in_ms)} on`;
  return node.why_drained ? `${when}: ${node.why_drained}` : when;
}

/** Write a count with its word: "1 GPU", "3 GPUs". */
export function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

/** Write a time of day as the reader's place has it. */
export function showTime(unixMs: number): string {
  return new Date(unixMs).toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

/** Write a time of today to the second: "14:03:12". */
export function showClock(unixMs: number): string {
  return new Date(unixMs).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** Write when it is so long from now, to the minute and with the zone: asked again and again, it says the same. */
export function showMoment(inMs: number): string {
  return showMomentAt(Math.round((Date.now() + inMs) / MINUTE) * MINUTE);
}

/** Write a time that people agree on, who may live elsewhere: with the zone of the reader's clock. */
export function showMomentAt(unixMs: number): string {
  return `${showTime(unixMs)} ${showZone(new Date(unixMs))}`;
}

/** Name the zone of the reader's clock at a time: "UTC", "GMT+1". */
export function showZone(at: string | Date): string {
  const date = at ? new Date(at) : new Date();
  const parts = new Intl.DateTimeFormat([], { timeZoneName: "short" }).formatToParts(Number.isNaN(date.getTime()) ? new Date() : date);
  return parts.find((one) => one.type === "timeZoneName")?.value ?? "";
}

/** Write the name of a slot without what all makers write into it. */
export function shortName(name: string): string {
  return name.replace(/^NVIDIA\s+/, "").replace(/\s+(PCIe|HBM\d\w*|SXM\d?)\b/g, "");
}
