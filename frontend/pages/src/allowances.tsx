// Asking for more than the rules give: what I asked for, on *Me*; what there is to decide, on *Project*.
import { useState } from "preact/hooks";
import { ask } from "./api";
import type { AllowanceReport, AllowanceRow, UsedBudgets } from "./api_types";
import { useLive } from "./live";
import { Act, Section } from "./parts";
import { count, showDuration, showHours, showMilli, showMomentAt, showTime } from "./words";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FOR: { name: string; ms: number }[] = [
  { name: "4 hours", ms: 4 * HOUR_MS },
  { name: "a day", ms: DAY_MS },
  { name: "2 days", ms: 2 * DAY_MS },
  { name: "a week", ms: 7 * DAY_MS },
];

/** My requests and a form for another one. */
export function MyRequests({ projects, budgets, word }: { projects: string[]; budgets: UsedBudgets[]; word: string }) {
  const live = useLive<AllowanceReport>("/allowances", 10_000);
  const mine = live.data?.rows.filter((one) => one.is_own) ?? [];
  return (
    <Section title="Ask for more" note="Longer cells, more at once, or more budget, for a while. Your project's rules grant it, its lead, or an admin.">
      {mine.length > 0 && (
        <ul class="cards">
          {mine.map((one) => (
            <li class="card" key={one.id}>
              <h3>{showWanted(one, word)} <small>{one.state}</small></h3>
              <p>In {one.project}: “{one.why}”</p>
              <p>{showStanding(one)}</p>
              {one.state === "open" && <Act text="Take back" about={showWanted(one, word)} path={`/allowances/${encodeURIComponent(one.id)}/decline`} done={() => "taken back"} onDone={live.refresh} />}
            </li>
          ))}
        </ul>
      )}
      <Form projects={projects} budgets={budgets} word={word} onDone={live.refresh} />
    </Section>
  );
}

function Form({ projects, budgets, word, onDone }: { projects: string[]; budgets: UsedBudgets[]; word: string; onDone: () => void }) {
  const [project, setProject] = useState("");
  const [hours, setHours] = useState("");
  const [gpus, setGpus] = useState("");
  const [alone, setAlone] = useState(false);
  const [budget, setBudget] = useState("");
  const [budgetOf, setBudgetOf] = useState("");
  const [forMs, setForMs] = useState(DAY_MS);
  const [why, setWhy] = useState("");
  const [said, setSaid] = useState("");
  const payer = project || projects[0] || "default";
  const whose = budgets.find((one) => one.project === payer)?.budgets ?? [];
  const send = async (event: Event) => {
    event.preventDefault();
    const body = {
      project: payer,
      why,
      ...(budget ? { budget_ms: Math.round(Number(budget) * HOUR_MS), budget_of: whose.includes(budgetOf) ? budgetOf : "" } : { for_ms: forMs }),
      ...(hours ? { walltime_ms: Math.round(Number(hours) * HOUR_MS) } : {}),
      ...(gpus ? { gpus: Number(gpus), is_exclusive: alone } : {}),
    };
    try {
      const report = await ask<AllowanceReport>("/allowances", "POST", body);
      setSaid(report.rows[0]?.state === "granted" ? "Granted at once." : "Asked. You read here what is decided.");
      setWhy("");
      onDone();
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form class="choices" onSubmit={send}>
      {projects.length > 1 && (
        <label>
          Project{" "}
          <select value={project || projects[0]} onChange={(event) => setProject(event.currentTarget.value)}>
            {projects.map((one) => <option key={one} value={one}>{one}</option>)}
          </select>
        </label>
      )}
      <label>Hours for a cell <input type="number" min="0.25" max="720" step="0.25" value={hours} disabled={!!budget} onInput={(event) => setHours(event.currentTarget.value)} /></label>
      <label>{word}s at once <input type="number" min="1" max="1024" step="1" value={gpus} disabled={!!budget} onInput={(event) => setGpus(event.currentTarget.value)} /></label>
      <label><input type="checkbox" checked={alone} disabled={!gpus} onChange={(event) => setAlone(event.currentTarget.checked)} /> As a node for yourself, which has so many</label>
      <label>More {word}-hours of the budget <input type="number" min="0.1" max="1000000" step="0.1" value={budget} disabled={!!hours || !!gpus} onInput={(event) => setBudget(event.currentTarget.value)} /></label>
      {budget && whose.length > 1 && (
        <label>
          Whose budget{" "}
          <select value={whose.includes(budgetOf) ? budgetOf : ""} onChange={(event) => setBudgetOf(event.currentTarget.value)}>
            <option value="">the one that leaves least</option>
            {whose.map((one) => <option key={one} value={one}>{one}</option>)}
          </select>
        </label>
      )}
      {!budget && <label>For <Choice value={forMs} onChange={setForMs} /></label>}
      <label>Why <input type="text" required maxLength={500} value={why} onInput={(event) => setWhy(event.currentTarget.value)} /></label>
      <button type="submit" disabled={!hours && !gpus && !budget}>Ask</button>
      <span role="status" class="note">{said}</span>
    </form>
  );
}

/** What there is to decide in the projects that somebody leads, and what was granted there. */
export function RequestsToDecide({ project, word }: { project: string; word: string }) {
  const live = useLive<AllowanceReport>("/allowances", 5000);
  const rows = live.data?.rows.filter((one) => one.may_decide && one.project === project) ?? [];
  const open = rows.filter((one) => one.state === "open");
  const granted = rows.filter((one) => one.state === "granted");
  const decided = rows.filter((one) => one.state !== "open" && one.state !== "granted");
  if (rows.length === 0) return null;
  return (
    <Section title="Asked for" note="Members who need more than the rules give, and why.">
      <ul class="cards">
        {open.map((one) => <Open key={one.id} one={one} word={word} onDone={live.refresh} />)}
        {granted.map((one) => (
          <li class="card" key={one.id}>
            <h3>{one.user}: {showWanted(one, word)} <small>granted</small></h3>
            <p>“{one.why}” {showStanding(one)}</p>
            <Act text="End it" about={`${one.user}, ${showWanted(one, word)}`} path={`/allowances/${encodeURIComponent(one.id)}/decline`} confirm="End it now" done={() => "ended"} onDone={live.refresh} />
          </li>
        ))}
      </ul>
      {decided.length > 0 && (
        <details>
          <summary>{count(decided.length, "request")} of the last days, decided or over</summary>
          <ul>
            {decided.map((one) => <li key={one.id}>{one.user}: {showWanted(one, word)}. “{one.why}” {showStanding(one)}</li>)}
          </ul>
        </details>
      )}
    </Section>
  );
}

function Open({ one, word, onDone }: { one: AllowanceRow; word: string; onDone: () => void }) {
  const [forMs, setForMs] = useState(one.for_ms);
  const [sentence, setSentence] = useState("");
  const path = `/allowances/${encodeURIComponent(one.id)}`;
  const name = `${one.user}, ${showWanted(one, word)}`;
  return (
    <li class="card">
      <h3>{one.user}: {showWanted(one, word)} <small>asked {showTime(one.asked_at_ms)}</small></h3>
      <p>“{one.why}”</p>
      <p>Uses {showMilli(one.used_milli)} now, and {showHours(one.recent_ms, word)} of late.{one.may_grant ? "" : ` ${showStanding(one)}`}</p>
      <p class="choices">
        {one.may_grant && <label>For <Choice value={forMs} onChange={setForMs} /></label>}
        <label>Say <input type="text" maxLength={500} value={sentence} onInput={(event) => setSentence(event.currentTarget.value)} /></label>
      </p>
      <p class="actions">
        {one.may_grant && <Act text="Grant" about={name} path={`${path}/grant`} body={{ for_ms: forMs, sentence }} done={() => "granted"} onDone={onDone} />}
        <Act text="Decline" about={name} path={`${path}/decline`} body={{ sentence }} done={() => "declined"} onDone={onDone} />
      </p>
    </li>
  );
}

function Choice({ value, onChange }: { value: number; onChange: (ms: number) => void }) {
  const choices = FOR.some((one) => one.ms === value) ? FOR : [{ name: showDuration(value), ms: value }, ...FOR];
  return (
    <select value={value} onChange={(event) => onChange(Number(event.currentTarget.value))}>
      {choices.map((one) => <option key={one.ms} value={one.ms}>{one.name}</option>)}
    </select>
  );
}

function showWanted(one: AllowanceRow, word: string): string {
  const parts = [];
  if (one.budget_ms !== null) parts.push(`${showHours(one.budget_ms)} more ${word}-hours of the budget of ${one.budget_of}`);
  if (one.walltime_ms !== null) parts.push(`cells of up to ${showDuration(one.walltime_ms)}`);
  if (one.gpus !== null) parts.push(`${count(one.gpus, word)}${one.is_exclusive ? " as a node for oneself" : ""}`);
  return parts.join(" and ");
}

function showStanding(one: AllowanceRow): string {
  const said = one.sentence ? `: ${one.sentence}` : "";
  const by = one.by ? ` by ${one.by}` : " by the project's rules";
  if (one.state === "open" && one.needs_admin) return "It is more than a lead of the project may grant: an admin decides.";
  if (one.state === "open") return one.leads.length > 0 ? `${one.leads.join(" or ")} or an admin decides.` : "A lead of the project or an admin decides.";
  if (one.state === "granted") return `Granted${by} until ${one.until_at_ms === null ? "" : showMomentAt(one.until_at_ms)}${said}.`;
  if (one.state === "over") return `It was granted${by}, and is over${said}.`;
  if (one.state === "withdrawn") return `Taken back${said}.`;
  return `Declined${by}${said}.`;
}
