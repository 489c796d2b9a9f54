// *Me*: what I run and wait for, what I may use, what my last cells cost.
import { MyRequests } from "./allowances";
import type { CellReceipt, MeView, MyCell, NodeCells, ProjectStanding, ReceiptsView, ShownRequest } from "./api_types";
import { First } from "./first_rows";
import { useLive } from "./live";
import { showWait } from "./now_page";
import { Act, Bar, Copy, Section, Table, Waiting } from "./parts";
import { WHY_SCALED, count, sayScaled, shortName, showAge, showDuration, showHours, showMilli, showSize, showTime } from "./words";

const CANCELLED: Record<string, string> = {
  withdrawn: "withdrawn",
  interrupted: "asked to stop",
  ended: "ended",
};
const STATES: Record<string, string> = {
  granted: "starting",
  busy: "running",
  kept: "kept between cells",
  reclaiming: "making room for others",
  hot: "kept ready",
  leaving: "being cleared",
};

export function MePage() {
  const me = useLive<MeView>("/me", 3000);
  const cells = useLive<NodeCells>("/me/cells", 15_000);
  const receipts = useLive<ReceiptsView>("/me/receipts", 15_000);
  const refresh = () => {
    me.refresh();
    cells.refresh();
  };
  const view = me.data;
  if (!view) return me.problem ? null : <Waiting what="Looking for your cells …" />;
  const word = view.slot_word;
  return (
    <>
      <p class="summary" role="status">{summary(view)}</p>
      <Section title="Running and kept ready">
        {view.running.length === 0 ? (
          <p class="empty">Nothing of yours runs. A notebook cell that begins with %%gpu would.</p>
        ) : (
          <First of="Running and kept ready" all={view.running}>
            {(shown) => <ul class="cards">{shown.map((one) => <Running key={one.lease} one={one} word={word} onDone={refresh} />)}</ul>}
          </First>
        )}
      </Section>
      {view.waiting.length > 0 && (
        <Section title="Waiting">
          <First of="Waiting" all={view.waiting}>
            {(shown) => <ul class="cards">{shown.map((one) => <WaitingCard key={one.lease} one={one} word={word} onDone={refresh} />)}</ul>}
          </First>
        </Section>
      )}
      <Background cells={cells.data} onDone={refresh} />
      <Section title="What you may use">
        {view.projects.length === 0 ? (
          <p class="empty">No quotas are set for your projects: what is free is yours to use.</p>
        ) : (
          <First of="What you may use" all={view.projects}>
            {(shown) => <ul class="cards">{shown.map((one) => <Project key={one.project} one={one} word={word} />)}</ul>}
          </First>
        )}
      </Section>
      <MyRequests projects={view.own_projects} budgets={view.used_budgets} word={word} />
      <Section title="Last cells" note="What each cost, and what would serve better next time.">
        {receipts.data && receipts.data.week_wait_ms !== null && (
          <p>Half of your cells of the last 7 days waited for {receipts.data.week_wait_ms < 1000 ? "less than a second" : `${showDuration(receipts.data.week_wait_ms)} or less`}.</p>
        )}
        {receipts.data && <Receipts view={receipts.data} />}
      </Section>
    </>
  );
}

function summary(view: MeView): string {
  const cells = view.running.filter((one) => one.state !== "hot" && one.state !== "kept").length;
  const hot = view.running.filter((one) => one.state === "hot").length;
  const kept = view.running.filter((one) => one.state === "kept").length;
  const words = [cells === 0 ? "No cell of yours runs" : `${count(cells, "cell")} of yours ${cells === 1 ? "runs" : "run"}`];
  if (kept > 0) words.push(`${count(kept, "place")} kept between cells`);
  if (hot > 0) words.push(`${hot} kept ready`);
  words.push(view.waiting.length === 0 ? "none waits" : `${view.waiting.length} in line`);
  return `${words.join(", ")}.`;
}

function Running({ one, word, onDone }: { one: MyCell; word: string; onDone: () => void }) {
  const isKept = one.state === "kept";
  const name = isKept ? "your place" : one.label || one.cell || one.lease;
  const where = one.slots.length > 1 ? `${count(one.slots.length, word)} of ${one.node}` : `${shortName(one.slots[0] ?? word)} of ${one.node}`;
  const isRunning = one.state === "busy" || one.state === "reclaiming";
  return (
    <li class={`card ${one.state}`}>
      <h3>{isKept ? "Your place" : one.label || <code>{one.cell ?? one.lease}</code>} <small>{STATES[one.state] ?? one.state}</small></h3>
      <p>
        {where}, for {showAge(one.for_ms)}
        {(isRunning || isKept) && `, at most ${showDuration(Math.max(0, one.walltime_ms - one.for_ms))} more`}
        {one.is_in_quota !== null && `, ${one.is_in_quota ? "in quota" : "borrowed: it goes back when its owner needs it"}`}.
      </p>
      {isKept && <p>No cell runs, and it is charged as if one did.</p>}
      {one.busy_percent !== null && (
        <p><Bar share={one.busy_percent / 100} label={`${word} busy`} text={`${one.busy_percent} % busy${one.used_bytes !== null ? `, ${showSize(one.used_bytes)} of ${showSize(one.memory_bytes)}` : ""}`} /></p>
      )}
      {one.idle_ms > 0 && isRunning && <p class="warning">The {word} has done nothing for {showDuration(one.idle_ms)}: others may be waiting for it.</p>}
      {isKept && (
        <Act text="Give back" about={name} path={`/cells/${encodeURIComponent(one.lease)}/cancel`} confirm="Give it back" done={() => "given back"} onDone={onDone} />
      )}
      {!isKept && one.state !== "hot" && one.state !== "leaving" && (
        <Act text="Cancel" about={name} path={`/cells/${encodeURIComponent(one.lease)}/cancel`} confirm="Stop this cell" done={(answer) => CANCELLED[answer.what ?? ""] ?? "done"} onDone={onDone} />
      )}
    </li>
  );
}

function WaitingCard({ one, word, onDone }: { one: ShownRequest; word: string; onDone: () => void }) {
  const path = `/cells/${encodeURIComponent(one.lease ?? "")}`;
  const isHeld = one.reason.startsWith("you hold it");
  const place = one.is_for_own ? "For a node of yours" : `Place ${one.position}`;
  const name = one.label || place.toLowerCase();
  return (
    <li class="card">
      <h3>{place} <small>{count(one.gpus, word)}{one.label && `, ${one.label}`}</small></h3>
      <p>Waited {showAge(one.waited_ms)}{showWait(one) && `, ${showWait(one)}`}.</p>
      {one.reason && <p class="reason"><span class="note">Why: </span>{one.reason}.</p>}
      <p class="actions">
      <Act text="Withdraw" about={name} path={`${path}/cancel`} confirm="Withdraw it" done={(answer) => CANCELLED[answer.what ?? ""] ?? "done"} onDone={onDone} />
      {isHeld ? (
        <Act text="Release" about={name} path={`${path}/release`} done={() => "waits as others do"} onDone={onDone} />
      ) : (
        <Act text="Hold" about={name} path={`${path}/hold`} done={() => "held until you release it"} onDone={onDone} />
      )}
      </p>
    </li>
  );
}

function Background(props: { cells: NodeCells | undefined; onDone: () => void }) {
  const cells = props.cells?.cells.filter((one) => !one.is_attended) ?? [];
  const missing = props.cells?.missing ?? [];
  if (cells.length === 0 && missing.length === 0) return null;
  return (
    <Section title="Without a notebook" note="Cells in the background, or whose notebook is gone. What you copy brings output and variables into any notebook of yours.">
      {missing.length > 0 && <p class="warning">No answer from {missing.join(", ")}: cells there are not shown.</p>}
      <First of="Without a notebook" all={cells}>{(shown) => (
      <ul class="cards">
        {shown.map((one) => (
          <li class="card" key={one.cell}>
            <h3>{one.label || <code>{one.cell}</code>} <small>{one.state === "running" ? "running" : one.state === "finished" ? "finished, results wait" : "its process died"}</small></h3>
            <p><code class="line">{one.line}</code></p>
            <p>On {one.node}, began {showDuration(one.since_ms)} ago.</p>
            <Copy text={one.attach} />
            {one.state === "running" && (
              <Act text="Cancel" about={one.label || one.cell} path={`/cells/${encodeURIComponent(one.cell)}/cancel`} confirm="Stop this cell" done={(answer) => CANCELLED[answer.what ?? ""] ?? "done"} onDone={props.onDone} />
            )}
          </li>
        ))}
      </ul>
      )}</First>
    </Section>
  );
}

export function Project({ one, word }: { one: ProjectStanding; word: string }) {
  const most = Math.max(one.guaranteed_milli, one.used_milli, one.limit_milli ?? 0, 1);
  const isOver = one.used_milli > one.guaranteed_milli;
  return (
    <li class="card">
      <h3>{one.project} {one.is_led && <small>you lead it</small>}</h3>
      <p><Bar share={one.used_milli / most} label="Used" kind={isOver ? "borrowed" : ""} text={`${showMilli(one.used_milli)} in use${one.guaranteed_milli ? ` of ${showMilli(one.promised_milli ?? one.guaranteed_milli)} guaranteed` : ", nothing guaranteed"}${one.limit_milli !== null ? `, ${showMilli(one.limit_milli)} at most` : ""}`} /></p>
      {one.promised_milli !== null && <p>{sayScaled(one.guaranteed_milli)}: {WHY_SCALED}.</p>}
      {one.budget_ms !== null && one.budget_left_ms !== null && (
        <p><Bar share={one.budget_ms ? one.budget_left_ms / one.budget_ms : 0} label="Budget left" text={`${showHours(one.budget_left_ms, word)} left of ${showHours(one.budget_ms)} this ${one.period ?? "period"}${one.period_ends_in_ms !== null ? `, which ends in ${showDuration(one.period_ends_in_ms)}` : ""}`} /></p>
      )}
      {one.credits_ms !== 0 && <p>{one.credits_ms > 0 ? `${showHours(one.credits_ms, word)} of credit, by lending.` : `${showHours(-one.credits_ms, word)} borrowed of others, to be lent back.`}</p>}
      {one.borrows_in_ms > 0 && <p>Others took back what was theirs: it may borrow again in {showDuration(one.borrows_in_ms)}.</p>}
      {one.waiting > 0 && <p>{count(one.waiting, "request")} in line.</p>}
      {one.class_hours && <p>{one.class_hours}.</p>}
      {one.rule && <p>What it has is said by the rule “{one.rule}”, which is for all groups like it.</p>}
    </li>
  );
}

function Receipts({ view }: { view: ReceiptsView }) {
  if (view.receipts.length === 0) return <p class="empty">No cell of yours has ended yet.</p>;
  const isMeasured = view.receipts.some((one) => one.mean_utilization !== null || one.peak_memory_bytes !== null);
  const number = (name: string) => ({ name, isNumber: true });
  return (
    <First of="Last cells" all={view.receipts}>{(shown) => (
    <Table isWide label="Your last cells" columns={["Ended", "Cell", "How", number("Waited"), number("Ran"), number(`${view.slot_word} time`), number("Borrowed"), number("Returned"), ...(isMeasured ? [number("Busy"), number("Peak")] : []), "Where"]}>
      {shown.map((one) => <Receipt key={`${one.cell}-${one.ended_at_ms}`} one={one} word={view.slot_word} isMeasured={isMeasured} />)}
    </Table>
    )}</First>
  );
}

function Receipt({ one, word, isMeasured }: { one: CellReceipt; word: string; isMeasured: boolean }) {
  const cost = one.charged_ms ?? (one.held_ms - one.refunded_ms) * one.slots;
  return (
    <>
      <tr>
        <td>{showTime(one.ended_at_ms)}</td>
        <td>{one.label || <code title={one.cell}>{one.cell.slice(0, 10)}</code>}{one.runs > 1 && <span class="note"> {one.runs} short cells</span>}</td>
        <td>{one.ended}</td>
        <td class="number">{one.waited_ms === null ? "—" : showAge(one.waited_ms)}</td>
        <td class="number">{showDuration(one.ran_ms)}</td>
        <td class="number">{showDuration(cost)}</td>
        <td class="number">{one.borrowed_ms ? showDuration(one.borrowed_ms * one.slots) : "—"}</td>
        <td class="number">{showSize(one.bytes_returned)}</td>
        {isMeasured && <td class="number">{one.mean_utilization === null ? "—" : `${Math.round(one.mean_utilization * 100)} %`}</td>}
        {isMeasured && <td class="number">{one.peak_memory_bytes === null ? "—" : showSize(one.peak_memory_bytes)}</td>}
        <td>{one.node}{one.is_exclusive && <span class="note"> a node for yourself, charged as all its {count(one.slots, word)}</span>}</td>
      </tr>
      {one.advice && <tr class="advice"><td colSpan={isMeasured ? 11 : 9}><span>{one.advice}</span></td></tr>}
    </>
  );
}
