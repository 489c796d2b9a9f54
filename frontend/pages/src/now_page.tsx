// *Now*: nodes and their slots as a picture, the line with its reasons, what frees next.
import type { NowView, PoolCounts, ShownNode, ShownRequest, ShownSlot } from "./api_types";
import { useLive } from "./live";
import { Section, Table, Waiting } from "./parts";
import { count, describeDrain, shortName, showAge, showDuration, showSize } from "./words";

const EVERY_MS = 3000;

type State = ShownSlot["state"];
/** Shape and word of each state, in the order of the legend: nothing is told by colour alone. */
const STATES: { state: State; mark: string; word: string; short?: string; about: string }[] = [
  { state: "busy", mark: "●", word: "running", about: "a cell runs" },
  { state: "idle", mark: "◍", word: "reserved but idle", short: "idle", about: "a cell holds it and computes nothing" },
  { state: "hot", mark: "◐", word: "kept ready", short: "ready", about: "a notebook keeps it for its next cell; it can be taken at once" },
  { state: "starting", mark: "◔", word: "starting", about: "given to a cell that has not begun" },
  { state: "leaving", mark: "◌", word: "being cleared", short: "clearing", about: "free in a moment" },
  { state: "free", mark: "○", word: "free", about: "for the next who asks" },
  { state: "drained", mark: "×", word: "drained", about: "an admin gives it nothing more" },
];
const WORDS = Object.fromEntries(STATES.map((one) => [one.state, one])) as Record<State, (typeof STATES)[number]>;

export function NowPage() {
  const live = useLive<NowView>("/now", EVERY_MS);
  const view = live.data;
  if (!view) return live.problem ? null : <Waiting what="Looking at the pool …" />;
  return <Now view={view} />;
}

function Now({ view }: { view: NowView }) {
  const { counts, slot_word: word } = view;
  return (
    <div class={live_class(view)}>
      <p class="summary" role="status">{summary(counts, word)}</p>
      {view.warnings.map((one) => <p class="warning" key={one}>{one}</p>)}
      <section aria-label={`${word}s`}>
        <Legend counts={counts} />
        {view.nodes.length === 0 && <p class="empty">No node has joined the pool yet.</p>}
        <div class="nodes">
          {view.nodes.map((node) => (
            <article class="node" key={node.node} aria-label={`Node ${node.node}`}>
              <h3>
                {node.node} <small>{node.owner && `${node.owner}'s own, `}{describeNode(node.slots, word)}{drains(node)}</small>
              </h3>
              <ul class="slots">{node.slots.map((slot) => <Slot key={slot.slot} slot={slot} />)}</ul>
            </article>
          ))}
        </div>
      </section>
      <div class="columns">
        <Section title="Waiting">
          <Queue view={view} />
        </Section>
        {view.own_queue.length > 0 && <OwnQueue view={view} />}
        <Section title="Frees next" note="At the latest, by the time that cells may take. Most end before.">
          {view.frees_next.length === 0 ? (
            <p class="empty">{counts.free > 0 ? `${count(counts.free, word)} free now.` : "No cell runs."}</p>
          ) : (
            <ol class="plain">
              {view.frees_next.map((one) => (
                <li key={one.node + one.slots.join()}>
                  <strong>{showDuration(one.in_ms)}</strong> {one.slots.length > 1 ? count(one.slots.length, word) : shortName(one.slots[0] ?? "")} of {one.node}
                </li>
              ))}
            </ol>
          )}
        </Section>
      </div>
    </div>
  );
}

function live_class(view: NowView): string {
  return view.counts.total > 24 ? "now dense" : "now";
}

export function summary(counts: PoolCounts, word: string): string {
  if (counts.total === 0) return `The pool has no ${word} at this moment.`;
  const words = [`${counts.free} of ${count(counts.total, word)} free`];
  if (counts.idle > 0) words.push(`${counts.idle} reserved but idle`);
  if (counts.hot > 0) words.push(`${counts.hot} kept ready`);
  words.push(counts.waiting === 0 ? "nobody waits" : `${counts.waiting} waiting`);
  return `${words.join(", ")}.`;
}

function Legend({ counts }: { counts: PoolCounts }) {
  const shown = STATES.filter((one) => counts[one.state] > 0);
  return (
    <ul class="legend" aria-label="How many are in which state">
      {shown.map((one) => (
        <li key={one.state} title={one.about}>
          <span class={`mark ${one.state}`} aria-hidden="true">{one.mark}</span> <strong>{counts[one.state]}</strong> {one.word}
        </li>
      ))}
    </ul>
  );
}

function describeNode(slots: ShownSlot[], word: string): string {
  const names = new Set(slots.map((slot) => shortName(slot.name)));
  const name = names.size === 1 ? [...names][0] : undefined;
  const memory = slots[0]?.memory_bytes ? `, ${showSize(slots[0].memory_bytes)} each` : "";
  if (!name || name === word) return count(slots.length, word);
  return names.size === 1 ? `${slots.length} × ${name}${memory}` : count(slots.length, word);
}

function drains(node: ShownNode): string {
  const when = describeDrain(node);
  return when && `, ${when}`;
}

function Slot({ slot }: { slot: ShownSlot }) {
  const { mark, word, short } = WORDS[slot.state];
  const isHeld = slot.user !== null;
  return (
    <li class={`slot ${slot.state} ${slot.is_mine ? "mine" : ""}`}>
      <p class="pair">
        <span class="state"><span class={`mark ${slot.state}`} aria-hidden="true">{mark}</span> {short ?? word}</span>
        {isHeld && <span class="age"><span class="hidden">for </span>{showAge(slot.for_ms)}</span>}
      </p>
      {isHeld && (
        <p class="who">
          {slot.is_mine ? <strong>you</strong> : slot.user}
          {slot.project && !slot.is_mine ? <span class="note"> {slot.project}</span> : null}
        </p>
      )}
      {slot.label && <p class="label" title={slot.label}>{slot.label}</p>}
      {slot.is_exclusive && <p class="note">a node for itself</p>}
      {slot.is_in_quota !== null && <p class="note">{slot.is_in_quota ? "in quota" : "borrowed"}</p>}
      {slot.busy_percent !== null && isHeld && (
        <p class="use">
          <span class="bar" aria-hidden="true"><span style={{ width: `${slot.busy_percent}%` }} /></span>
          <span class="pair"><span>{slot.busy_percent} %<span class="hidden"> busy</span></span>{slot.used_bytes ? <span>{showSize(slot.used_bytes)}</span> : null}</span>
        </p>
      )}
    </li>
  );
}

function Queue({ view }: { view: NowView }) {
  if (view.queue.length === 0) {
    return <p class="empty">{view.counts.waiting === 0 ? "Nobody waits." : `${view.counts.waiting} wait.`}</p>;
  }
  const more = view.counts.waiting - view.queue.length;
  return (
    <>
      <Table
        label="Who waits"
        columns={[{ name: "Place", isNumber: true }, "Who", { name: `${view.slot_word}s`, isNumber: true }, { name: "Waited", isNumber: true }]}
      >
        {view.queue.map((one, place) => <Row key={one.lease ?? `${one.position}-${place}`} one={one} />)}
      </Table>
      {more > 0 && <p class="note">and {more.toLocaleString()} more.</p>}
    </>
  );
}

function OwnQueue({ view }: { view: NowView }) {
  const isMine = view.own_queue.every((one) => one.is_mine);
  const more = view.own_waiting - view.own_queue.length;
  return (
    <Section title={isMine ? "Waiting for a node of yours" : "Waiting for nodes that users have brought"} note="Not in the line of the pool: only a node of their own can serve them, and nobody else waits for it.">
      <Table label="Who waits for a node of their own" columns={["Who", { name: `${view.slot_word}s`, isNumber: true }, { name: "Waited", isNumber: true }]}>
        {view.own_queue.map((one) => <OwnRow key={one.lease} one={one} />)}
      </Table>
      {more > 0 && <p class="note">and {more.toLocaleString()} more.</p>}
    </Section>
  );
}

function OwnRow({ one }: { one: ShownRequest }) {
  return (
    <>
      <tr>
        <td>{showWho(one)}</td>
        <td class="number">{one.gpus}</td>
        <td class="number">{showAge(one.waited_ms)}</td>
      </tr>
      {one.reason && <tr class="why"><td colSpan={3}>{showReason(one)}</td></tr>}
    </>
  );
}

function showWho(one: ShownRequest) {
  return (
    <>
      {one.is_mine ? <strong>you</strong> : one.user}
      {one.label && <span class="note"> {one.label}</span>}
    </>
  );
}

function Row({ one }: { one: ShownRequest }) {
  const words = [showWait(one), showReason(one)].filter((word) => word !== "");
  return (
    <>
      <tr class={one.is_mine ? "mine" : ""}>
        <td class="number">{one.position}</td>
        <td>{showWho(one)}</td>
        <td class="number">{one.gpus}</td>
        <td class="number">{showAge(one.waited_ms)}</td>
      </tr>
      {words.length > 0 && (
        <tr class={one.is_mine ? "why mine" : "why"}>
          <td />
          <td colSpan={3}>{words.join(": ")}</td>
        </tr>
      )}
    </>
  );
}

/** Write why somebody waits; of others in the words that they read ("1 request is before yours"). */
export function showReason(one: ShownRequest): string {
  return one.is_mine || !one.reason ? one.reason : `${one.user} reads: ${one.reason}`;
}

/** Write how long it takes yet, usually and at most; nothing where nobody can say. */
export function showWait(one: ShownRequest): string {
  const words: string[] = [];
  if (one.usual_ms !== null && (one.most_ms === null || one.usual_ms < one.most_ms)) words.push(`usually ${showDuration(one.usual_ms)}`);
  if (one.most_ms !== null) words.push(`at most ${showDuration(one.most_ms)}`);
  return words.length > 0 ? `${words.join(", ")} from now` : "";
}
