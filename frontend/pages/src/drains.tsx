// Emptying a node, now or at a time, and taking it back: for admins.
import { useState } from "preact/hooks";
import type { NodeState, NowView, ShownNode } from "./api_types";
import { useLive } from "./live";
import { type Choice, useMoment } from "./moment_choice";
import { Act, Section, Waiting } from "./parts";
import { count, describeDrain } from "./words";

const HOUR_MS = 3_600_000;
const WHEN: Choice[] = [
  { name: "now", ms: 0 },
  { name: "in 1 hour", ms: HOUR_MS },
  { name: "in 4 hours", ms: 4 * HOUR_MS },
  { name: "in a day", ms: 24 * HOUR_MS },
];

export function NodesToDrain() {
  const live = useLive<NowView>("/now", 5000);
  const view = live.data;
  return (
    <Section title="Nodes" note="A drained node is given nothing more: running cells end as they would, idle sessions leave at once. It holds until you give the node back, through restarts.">
      {!view && !live.problem && <Waiting what="Looking at the pool …" />}
      {view?.nodes.length === 0 && <p class="empty">No node has joined the pool yet.</p>}
      {view && <ul class="cards">{view.nodes.map((one) => <Node key={one.node} one={one} word={view.slot_word} onDone={live.refresh} />)}</ul>}
    </Section>
  );
}

function Node({ one, word, onDone }: { one: ShownNode; word: string; onDone: () => void }) {
  const moment = useMoment(WHEN, 0);
  const [why, setWhy] = useState("");
  const isEmptied = one.is_drained || one.drains_in_ms !== null;
  const inMs = moment.inMs();
  const path = `/nodes/${encodeURIComponent(one.node)}/drain`;
  const done = (answer: unknown) => {
    setWhy("");
    return (answer as NodeState).sentence;
  };
  return (
    <li class="card">
      <h3>{one.node} <small>{describeDrain(one) || "given cells"}</small></h3>
      <p>{describeUse(one, word)}</p>
      <p class="choices">
        {!isEmptied && moment.fields({ choice: "When", at: "At" })}
        <label>Why <input type="text" maxLength={255} value={why} onInput={(event) => setWhy(event.currentTarget.value)} /></label>
      </p>
      <p class="actions">
        {isEmptied ? (
          <Act text="Give back" about={one.node} path={why ? `${path}?why=${encodeURIComponent(why)}` : path} method="DELETE" done={done} onDone={onDone} />
        ) : moment.isToCome() ? (
          <Act text="Drain" about={one.node} path={path} body={{ why, ...(inMs > 0 ? { in_ms: inMs } : {}) }} confirm={moment.isNow ? `Drain ${one.node} now` : `Plan it for ${one.node}`} done={done} onDone={onDone} />
        ) : (
          <span class="note">Choose a time that is still to come.</span>
        )}
      </p>
    </li>
  );
}

function describeUse(one: ShownNode, word: string): string {
  const busy = one.slots.filter((slot) => slot.state === "busy" || slot.state === "idle" || slot.state === "starting").length;
  return busy === 0 ? `${count(one.slots.length, word)}, no cell runs.` : `Cells run on ${busy} of ${count(one.slots.length, word)}.`;
}
