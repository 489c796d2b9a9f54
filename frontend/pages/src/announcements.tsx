// What an admin tells everybody: shown above each page, and written on *Admin*.
import { useState } from "preact/hooks";
import { ask } from "./api";
import type { AnnouncedNow } from "./api_types";
import { useLive } from "./live";
import { type Choice, useMoment } from "./moment_choice";
import { Act, Section } from "./parts";
import { showMoment } from "./words";

const HOUR_MS = 3_600_000;
const FOR: Choice[] = [
  { name: "1 hour", ms: HOUR_MS },
  { name: "4 hours", ms: 4 * HOUR_MS },
  { name: "a day", ms: 24 * HOUR_MS },
  { name: "a week", ms: 7 * 24 * HOUR_MS },
];

/** What is announced, for everybody; its page says why where it cannot be read. */
export function Announced() {
  const { data } = useLive<AnnouncedNow>("/announcement", 10_000);
  return <div aria-live="polite">{data?.sentence ? <p class="announcement"><strong>{data.by}:</strong> {data.sentence}</p> : null}</div>;
}

/** A form to announce something, and what is announced with its end. */
export function AnnouncementForm() {
  const live = useLive<AnnouncedNow>("/announcement", 10_000);
  const [sentence, setSentence] = useState("");
  const moment = useMoment(FOR, 4 * HOUR_MS);
  const [said, setSaid] = useState("");
  const announced = live.data?.sentence ? live.data : undefined;
  const send = async (event: Event) => {
    event.preventDefault();
    if (!moment.isToCome()) return setSaid("Choose a time that is still to come.");
    try {
      await ask<AnnouncedNow>("/announcement", "POST", { sentence, for_ms: moment.inMs() });
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
        {moment.fields({ choice: "For", at: "Until" })}
        <button type="submit">Announce</button>
        <span role="status" class="note">{said}</span>
      </form>
    </Section>
  );
}
