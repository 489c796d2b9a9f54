// Until when, or when, something is to be: a length that is chosen from some, or a time of day by the reader's clock.
import { useState } from "preact/hooks";
import { showZone } from "./words";

export interface Choice {
  name: string;
  ms: number;
}

const AT = -1;

export interface Moment {
  /** How long from now; not a number while no time of day is chosen. */
  inMs: () => number;
  isToCome: () => boolean;
  isNow: boolean;
  fields: (names: { choice: string; at: string }) => preact.JSX.Element;
}

/** Keep what somebody chose of `choices`, of which `startMs` is the first to be shown. */
export function useMoment(choices: readonly Choice[], startMs: number): Moment {
  const [chosenMs, setChosen] = useState(startMs);
  const [at, setAt] = useState("");
  const inMs = () => (chosenMs === AT ? Math.round(new Date(at).getTime() - Date.now()) : chosenMs);
  return {
    inMs,
    isToCome: () => chosenMs !== AT || inMs() > 0,
    isNow: chosenMs === 0,
    fields: (names) => (
      <>
        <label>
          {names.choice}{" "}
          <select value={chosenMs} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
            {choices.map((one) => <option key={one.ms} value={one.ms}>{one.name}</option>)}
            <option value={AT}>{names.at === "Until" ? "until a time" : "at a time"}</option>
          </select>
        </label>
        {chosenMs === AT && (
          <label>
            {names.at} <input type="datetime-local" required value={at} onInput={(event) => setAt(event.currentTarget.value)} /> <span class="note">{showZone(at)}</span>
          </label>
        )}
      </>
    ),
  };
}
