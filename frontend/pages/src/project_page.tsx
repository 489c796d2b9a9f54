// *Project*: its share over time, its members, its experiments by label, who lent most; for its lead what to do about it.
import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { RequestsToDecide } from "./allowances";
import type { ProjectView, ProjectsView, RunningShown, ShownRequest, UsePart } from "./api_types";
import { FirstInLine } from "./boosts";
import { Chart, type Series } from "./chart";
import { First } from "./first_rows";
import { useLive } from "./live";
import { Project } from "./me_page";
import { showReason } from "./now_page";
import { Act, Bar, Section, Table, Waiting } from "./parts";
import { count, showAge, showHours } from "./words";

const HOUR_MS = 3_600_000;
/** So many of a line are shown at first. */
const ROWS = 20;
const STRETCHES: { stretch: ProjectView["stretch"]; name: string; count: number }[] = [
  { stretch: "hour", name: "by hour", count: 24 },
  { stretch: "day", name: "by day", count: 14 },
  { stretch: "week", name: "by week", count: 12 },
];

export function ProjectPage() {
  const choices = useLive<ProjectsView>("/projects", 60_000);
  const asked = new URLSearchParams(location.search);
  const [name, setProject] = useState(asked.get("project") ?? "");
  const [stretch, setStretch] = useState(STRETCHES.find((one) => one.stretch === asked.get("by")) ?? STRETCHES[1]!);
  const path = name ? `/projects/${encodeURIComponent(name)}?stretch=${stretch.stretch}&count=${stretch.count}` : undefined;
  const live = useLive<ProjectView>(path, 10_000);
  const choose = (newProject: string, newStretch: typeof stretch) => {
    setProject(newProject);
    setStretch(newStretch);
    const query = new URLSearchParams({ project: newProject, by: newStretch.stretch });
    history.replaceState(null, "", `?${query}`);
  };
  const opens = choices.data?.opens;
  useEffect(() => {
    // Once: which one is most in use changes, and the page stays with what its reader looks at.
    if (!name && opens) choose(opens, stretch);
  }, [name, opens]);
  return (
    <>
      <form class="choices" onSubmit={(event) => event.preventDefault()}>
        <label>
          Project{" "}
          <select value={name} onChange={(event) => choose(event.currentTarget.value, stretch)}>
            {choices.data?.projects.map((one) => (
              <option key={one.project} value={one.project}>
                {one.parent ? `${one.parent} / ${one.project}` : one.project}
              </option>
            ))}
          </select>
        </label>
        <fieldset>
          <legend class="hidden">Time</legend>
          {STRETCHES.map((one) => (
            <label key={one.stretch} class="choice">
              <input type="radio" name="stretch" checked={one === stretch} onChange={() => choose(name, one)} /> {one.name}
            </label>
          ))}
        </fieldset>
      </form>
      {live.data ? <Shown view={live.data} onDone={live.refresh} /> : !live.problem && <Waiting what="Reading the ledger …" />}
    </>
  );
}

function Shown({ view, onDone }: { view: ProjectView; onDone: () => void }) {
  const word = view.slot_word;
  return (
    <>
      {view.standing && <ul class="cards single"><Project one={view.standing} word={word} /></ul>}
      {view.is_led && <RequestsToDecide project={view.project} word={word} />}
      <Section title="Share over time" note={`In ${word}-hours; of cells that run, up to now. Dashed: what the project is guaranteed now.`}>
        <Share view={view} />
      </Section>
      {view.is_led && (view.running.length > 0 || view.waiting.length > 0) && (
        <Section title="Running and waiting" note="For leads: others see only their own.">
          {view.running.length > 0 && view.waiting.length > 0 && <h3>Running</h3>}
          {view.running.length > 0 && <Running rows={view.running} word={word} onDone={onDone} />}
          {view.running.length > 0 && view.waiting.length > 0 && <h3>Waiting</h3>}
          {view.waiting.length > 0 && <WaitingRows rows={view.waiting} word={word} onDone={onDone} />}
        </Section>
      )}
      {view.is_led && <FirstInLine view={view} onDone={onDone} />}
      <div class="columns">
        <Section title="Members" note={view.is_led ? "" : "Names of others are for the lead of the project."}>
          <Members view={view} />
        </Section>
        <Section title="Experiments" note={view.is_led ? "By label: %%gpu --label NAME." : "Yours, by label: %%gpu --label NAME."}>
          <Labels view={view} />
        </Section>
      </div>
      <Lenders view={view} />
    </>
  );
}

const PARTS: { name: string; of: (part: UsePart) => number; colour: string; kind: Series["kind"] }[] = [
  { name: "in quota", of: (part) => part.in_quota_ms, colour: "--accent", kind: "bar" },
  { name: "borrowed", of: (part) => part.borrowed_ms, colour: "--borrowed", kind: "bar" },
  { name: "guaranteed", of: (part) => part.guaranteed_ms, colour: "--ink", kind: "line" },
  { name: "lent to others", of: (part) => part.lent_ms, colour: "--lent", kind: "lent" },
];

function Share({ view }: { view: ProjectView }) {
  const used = view.parts.reduce((sum, part) => sum + part.in_quota_ms + part.borrowed_ms, 0);
  const shown = PARTS.filter((one) => one.kind === "bar" || view.parts.some((part) => one.of(part) > 0));
  const whole = Math.max(...view.parts.map((part) => part.guaranteed_ms)) / HOUR_MS; // of the last stretch, too, which is not over
  const series = shown.map((one) => ({ ...one, values: view.parts.map((part) => (one.kind === "line" ? whole : one.of(part) / HOUR_MS)) }));
  const total = (of: (part: UsePart) => number) => view.parts.reduce((sum, part) => sum + of(part), 0);
  const lent = total((part) => part.lent_ms);
  if (used === 0 && lent === 0) return <p class="empty">No cell of this project has run in this time.</p>;
  const label = `${view.project}: ${showHours(used, view.slot_word)} used in ${count(view.parts.length, view.stretch)}. The table below says the same.`;
  return (
    <>
      <ul class="legend">
        {shown.map((one) => (
          <li key={one.name}><span class={`key ${one.kind} ${one.name.split(" ")[0]}`} aria-hidden="true" /> {one.name}{one.kind !== "line" && <strong> {showHours(total(one.of))}</strong>}</li>
        ))}
      </ul>
      <Chart label={label} times={view.parts.map((part) => part.from_ms)} series={series} unit={`${view.slot_word}-hours`} />
      <details>
        <summary>As a table</summary>
        <Table isWide label="Share over time" columns={["From", ...shown.map((one) => ({ name: one.name, isNumber: true }))]}>
          {view.parts.map((part) => (
            <tr key={part.from_ms}>
              <td>{showStretch(part, view.stretch)}</td>
              {shown.map((one) => <td class="number" key={one.name}>{showHours(one.of(part))}</td>)}
            </tr>
          ))}
        </Table>
      </details>
    </>
  );
}

function showStretch(part: UsePart, stretch: ProjectView["stretch"]): string {
  const date = new Date(part.from_ms);
  if (stretch === "hour") return date.toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  return date.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
}

function Members({ view }: { view: ProjectView }) {
  const most = Math.max(...view.members.map((one) => one.slot_ms), 1);
  const me = document.body.dataset["user"];
  if (view.members.length === 0) return <p class="empty">Nobody has used it in this time.</p>;
  return (
    <First of="Members" all={view.members}>{(shown) => (
    <Table label="Members" columns={["Who", `${view.slot_word}-hours`, { name: "Cells", isNumber: true }]}>
      {shown.map((one) => (
        <tr key={one.user}>
          <td>{one.user === me ? <strong>you</strong> : one.user}</td>
          <td><Bar share={one.slot_ms / most} label={`${view.slot_word}-hours`} text={showHours(one.slot_ms)} /></td>
          <td class="number">{one.cells}</td>
        </tr>
      ))}
    </Table>
    )}</First>
  );
}

function Labels({ view }: { view: ProjectView }) {
  if (view.labels.length === 0) return <p class="empty">No cell with a label has run in this time.</p>;
  const most = Math.max(...view.labels.map((one) => one.slot_ms), 1);
  return (
    <First of="Experiments" all={view.labels}>{(shown) => (
    <Table isWide label="Experiments" columns={["Label", ...(view.is_led ? ["Who"] : []), `${view.slot_word}-hours`, { name: "Cells", isNumber: true }]}>
      {shown.map((one) => (
        <tr key={`${one.name} ${one.user}`}>
          <td>{one.name}</td>
          {view.is_led && <td>{one.user}</td>}
          <td><Bar share={one.slot_ms / most} label={`${view.slot_word}-hours`} text={showHours(one.slot_ms)} /></td>
          <td class="number">{one.cells}</td>
        </tr>
      ))}
    </Table>
    )}</First>
  );
}

function Lenders({ view }: { view: ProjectView }) {
  if (view.lenders.length === 0) return null;
  const own = view.lenders.find((one) => one.is_own);
  const most = view.lenders[0]?.lent_ms ?? 1;
  return (
    <Section title="Who lent most" note="What others computed on what these projects were guaranteed and did not need. It earns them credit.">
      {own && <p class="praise">{own.rank === 1 ? "Your project lent more than any other. Thank you." : `Your project is ${ordinal(own.rank)} of ${view.lenders.length}. Thank you.`}</p>}
      <ol class="ranks">
        {view.lenders.slice(0, 10).map((one) => (
          <li key={one.rank} class={one.is_own ? "mine" : ""}>
            <span class="name">{one.project}</span> <Bar share={one.lent_ms / most} label="Lent" text={showHours(one.lent_ms, view.slot_word)} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

function ordinal(number: number): string {
  const ending = number % 100 > 10 && number % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number}${ending}`;
}

function Running({ rows, word, onDone }: { rows: RunningShown[]; word: string; onDone: () => void }) {
  return (
    <First of="Running" all={rows}>{(shown) => (
    <Table isWide label="Running" columns={["Who", "Cell", { name: "Where", isOptional: true }, { name: "For", isNumber: true }, { name: "Share", isOptional: true }, ""]}>
      {shown.map((one) => (
        <tr key={one.lease}>
          <td>{one.user}</td>
          <td>{one.label || <code>{one.lease.slice(0, 10)}</code>}</td>
          <td class="optional">{count(one.slots, word)} of {one.node}</td>
          <td class="number">{showAge(one.for_ms)}</td>
          <td class="optional">{one.is_in_quota === null ? "kept ready" : one.is_in_quota ? "in quota" : "borrowed"}</td>
          <td>
            {one.is_in_quota !== null && (
              <Act text="Cancel" about={`${one.user}, ${one.label || one.lease}`} path={`/cells/${encodeURIComponent(one.lease)}/cancel`} confirm={`Stop ${one.user}'s cell`} done={() => "asked to stop"} onDone={onDone} />
            )}
          </td>
        </tr>
      ))}
    </Table>
    )}</First>
  );
}

function WaitingRows({ rows, word, onDone }: { rows: ShownRequest[]; word: string; onDone: () => void }) {
  return (
    <First of="Waiting" all={rows} first={ROWS}>{(shown) => (
    <Table label="Waiting" columns={[{ name: "Place", isNumber: true }, "Who", "Wants", { name: "Waited", isNumber: true }]}>
      {shown.map((one) => {
        const path = `/cells/${encodeURIComponent(one.lease ?? "")}`;
        const name = `${one.user}, ${one.label || one.lease}`;
        const isHeld = one.reason.startsWith("held by");
        return (
          <Fragment key={one.lease}>
          <tr>
            <td class="number">{one.position}</td>
            <td>{one.user}{one.label && <span class="note"> {one.label}</span>}</td>
            <td class="whole">{count(one.gpus, word)}</td>
            <td class="number">{showAge(one.waited_ms)}</td>
          </tr>
          <tr class="why">
            <td />
            <td colSpan={3}>
              {one.reason && <p>{showReason(one)}</p>}
              <p class="actions">
              <Act text="First" about={name} path={`${path}/first`} done={() => "first of the project"} onDone={onDone} />
              {isHeld ? (
                <Act text="Release" about={name} path={`${path}/release`} done={() => "released"} onDone={onDone} />
              ) : (
                <Act text="Hold" about={name} path={`${path}/hold`} done={() => "held"} onDone={onDone} />
              )}
              <Act text="Withdraw" about={name} path={`${path}/cancel`} confirm={`Withdraw ${one.user}'s request`} done={() => "withdrawn"} onDone={onDone} />
              </p>
            </td>
          </tr>
          </Fragment>
        );
      })}
    </Table>
    )}</First>
  );
}
