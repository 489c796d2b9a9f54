// Who of a project is first in line until a time: for its leads and admins.
import { useState } from "preact/hooks";
import { ask } from "./api";
import type { ProjectView } from "./api_types";
import { type Choice, useMoment } from "./moment_choice";
import { Act, Section } from "./parts";
import { showMoment } from "./words";

const DAY_MS = 24 * 3_600_000;
const FOR: Choice[] = [
  { name: "4 hours", ms: DAY_MS / 6 },
  { name: "a day", ms: DAY_MS },
  { name: "a week", ms: 7 * DAY_MS },
];

export function FirstInLine({ view, onDone }: { view: ProjectView; onDone: () => void }) {
  const [user, setUser] = useState("");
  const [why, setWhy] = useState("");
  const [said, setSaid] = useState("");
  const moment = useMoment(FOR, DAY_MS);
  const put = async (event: Event) => {
    event.preventDefault();
    if (!moment.isToCome()) return setSaid("Choose a time that is still to come.");
    try {
      await ask(boostsOf(view.project), "POST", { user: user.trim(), for_ms: moment.inMs(), why });
      setSaid(`${user.trim()} is first in line.`);
      setUser("");
      setWhy("");
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
    onDone();
  };
  return (
    <Section title="First in line" note="All that a member asks for here stands before what others of the project ask for, until a time. Other projects stand where they stood, and limits hold.">
      {view.boosts.length > 0 && (
        <ul class="cards">
          {view.boosts.map((one) => (
            <li class="card" key={`${one.project} ${one.user}`}>
              <h3>{one.user}{one.project !== view.project && <small> in {one.project}</small>}</h3>
              <p>Until {showMoment(one.for_ms)}, by {one.by}{one.why ? `: ${one.why}` : ""}.</p>
              <Act text="End" about={`first in line for ${one.user}`} path={`${boostsOf(one.project)}/${encodeURIComponent(one.user)}`} method="DELETE" done={() => "ended"} onDone={onDone} />
            </li>
          ))}
        </ul>
      )}
      <form class="choices" onSubmit={put}>
        <label>Member <input type="text" required maxLength={255} list="members" value={user} onInput={(event) => setUser(event.currentTarget.value)} /></label>
        <datalist id="members">{view.members.map((one) => <option key={one.user} value={one.user} />)}</datalist>
        {moment.fields({ choice: "For", at: "Until" })}
        <label>Why <input type="text" maxLength={255} value={why} onInput={(event) => setWhy(event.currentTarget.value)} /></label>
        <button type="submit">Put first</button>
        <span role="status" class="note">{said}</span>
      </form>
    </Section>
  );
}

function boostsOf(project: string): string {
  return `/projects/${encodeURIComponent(project)}/boosts`;
}
