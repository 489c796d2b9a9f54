// Who used how much, as a file for a spreadsheet: for admins.
import { useState } from "preact/hooks";
import { ask } from "./api";
import type { UsageAsked, UsageFile } from "./api_types";
import { Section } from "./parts";

/** Without it, some spreadsheets take letters beyond ASCII for others. */
const BYTE_ORDER_MARK = "\ufeff";
const DAY_MS = 24 * 3_600_000;
const BY: { by: UsageAsked["by"]; name: string }[] = [
  { by: "user", name: "user" },
  { by: "project", name: "project" },
  { by: "label", name: "label" },
  { by: "qos", name: "class of service" },
];
const PERIODS: { period: UsageAsked["period"]; name: string }[] = [
  { period: "all", name: "in all of the time" },
  { period: "day", name: "each day" },
  { period: "week", name: "each week" },
  { period: "month", name: "each month" },
];

export function UsageDownload() {
  const [by, setBy] = useState<UsageAsked["by"]>("user");
  const [period, setPeriod] = useState<UsageAsked["period"]>("all");
  const [first, setFirst] = useState(dayOf(Date.now() - 30 * DAY_MS));
  const [last, setLast] = useState(dayOf(Date.now()));
  const [said, setSaid] = useState("");
  const download = async (event: Event) => {
    event.preventDefault();
    const asked = new URLSearchParams({ by, period, since_ms: String(Date.parse(first)), until_ms: String(Date.parse(last) + DAY_MS) });
    try {
      const file = await ask<UsageFile>(`/usage?${asked}`);
      save(file.csv, `usage-by-${by}-${first}-to-${last}.csv`);
      setSaid(file.has_more ? "It has the first 2,000 rows: the command “bulletin usage --csv” writes all." : "Downloaded.");
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Section title="Usage for a spreadsheet" note="Comma-separated values, as the command “bulletin usage --csv” writes them: lengths in milliseconds, times in UTC. Both days count.">
      <form class="choices" onSubmit={download}>
        <label>
          By{" "}
          <select value={by} onChange={(event) => setBy(event.currentTarget.value as UsageAsked["by"])}>
            {BY.map((one) => <option key={one.by} value={one.by}>{one.name}</option>)}
          </select>
        </label>
        <label>
          Sums{" "}
          <select value={period} onChange={(event) => setPeriod(event.currentTarget.value as UsageAsked["period"])}>
            {PERIODS.map((one) => <option key={one.period} value={one.period}>{one.name}</option>)}
          </select>
        </label>
        <label>From <input type="date" required value={first} onInput={(event) => setFirst(event.currentTarget.value)} /></label>
        <label>To <input type="date" required value={last} onInput={(event) => setLast(event.currentTarget.value)} /></label>
        <button type="submit">Download</button>
        <span role="status" class="note">{said}</span>
      </form>
    </Section>
  );
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function save(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([BYTE_ORDER_MARK, text], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
