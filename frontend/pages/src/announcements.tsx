// What an admin tells everybody: shown above each page, and written on *Admin*.
import { useState } from "preact/hooks";
import { ask, useLive } from "./api";
import type { AnnouncedNow } from "./api_types";
import { Act, Section } from "./parts";
import { showMoment } from "./words";

const HOUR_MS = 3_600_000;
const FOR: { name: string; ms: number }[] = [
  { name: "1 hour", ms: HOUR_MS },
  { name: "4 hours", ms: 4 * HOUR_MS },
  { name: "a day", ms: 24 * HOUR_MS },
  { name: "a week", ms: 7 * 24 * HOUR_MS },
];
const AT = -1;

/** What is announced, for everybody; its page says why where it cannot be read. */
export function Announced() {
  const { data } = useLive<AnnouncedNow>("/announcement", 10_000);
  return <div aria-live="polite">{data?.sentence ? <p class="announcement"><strong>{data.by}:</strong> {data.sentence}</p> : null}</div>;
}

/** A form to announce something, and what is announced with its end. */
export function AnnouncementForm() {
  const live = useLive<AnnouncedNow>("/announcement", 10_000);
  const [sentence, setSentence] = useState("");
  const [forMs, setForMs] = useState(4 * HOUR_MS);
  const [at, setAt] = useState("");
  const [said, setSaid] = useState("");
  const announced = live.data?.sentence ? live.data : undefined;
  const lengthMs = forMs === AT ? Math.round(new Date(at).getTime() - Date.now()) : forMs;
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      await ask<AnnouncedNow>("/announcement", "POST", { sentence, for_ms: lengthMs });
      setSentence("");
      setSaid("Announced.");
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
    live.refresh();
  };
  return (
    <Section title="Announcement" note="One sentence for everybody: above these pages and in JupyterLab, and once in each cell that waits. A new one takes the place of the last.">
      {announced && (
        <div class="card">
          <p>“{announced.sentence}”</p>
          <p class="note">By {announced.by}, until {showMoment(announced.left_ms)}.</p>
          <Act text="Take back" about="the announcement" path="/announcement" method="DELETE" done={() => "taken back"} onDone={live.refresh} />
        </div>
      )}
      <form class="choices" onSubmit={send}>
        <label>Sentence <input type="text" required maxLength={256} size={40} value={sentence} onInput={(event) => setSentence(event.currentTarget.value)} /></label>
        <label>
          For{" "}
          <select value={forMs} onChange={(event) => setForMs(Number(event.currentTarget.value))}>
            {FOR.map((one) => <option key={one.ms} value={one.ms}>{one.name}</option>)}
            <option value={AT}>until a time</option>
          </select>
        </label>
        {forMs === AT && <label>Until <input type="datetime-local" required value={at} onInput={(event) => setAt(event.currentTarget.value)} /></label>}
        <button type="submit">Announce</button>
        <span role="status" class="note">{said}</span>
      </form>
    </Section>
  );
}
