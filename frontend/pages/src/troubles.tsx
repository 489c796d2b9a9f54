// What stands above a page while something on it is not up to date: why, and of when that is which is shown.
import { useEffect, useState } from "preact/hooks";
import { LOGGED_OUT } from "./api";
import { showAge, showClock } from "./words";

const TICK_MS = 5_000;
const SAID_MS = 8_000;
const LONG_MS = 180_000;

export interface Trouble {
  sentence: string;
  /** When what is still shown came, by the reader's clock; undefined where nothing is shown. */
  asOfMs: number | undefined;
  /** Whether the service has said that there is nothing to see. */
  isFinal: boolean;
  look: () => void;
}

const troubles = new Map<symbol, Trouble>();
const listeners = new Set<() => void>();

/** Note why something is not up to date, in the place of what was noted of it before. */
export function reportTrouble(of: symbol, trouble: Trouble): void {
  troubles.set(of, trouble);
  for (const listener of listeners) listener();
}

/** Note that something is up to date, or not shown any more. */
export function forgetTrouble(of: symbol): void {
  if (!troubles.delete(of)) return;
  for (const listener of listeners) listener();
}

/** Says each reason once, to everybody; and when all is well again. */
export function Troubles() {
  const [found, setFound] = useState<Trouble[]>([...troubles.values()]);
  const [, setTick] = useState(0);
  const [isOverMs, setOverMs] = useState(0);
  useEffect(() => {
    const listen = () => setFound([...troubles.values()]);
    listeners.add(listen);
    listen(); // what was noted before this was there
    return () => void listeners.delete(listen);
  }, []);
  const isAny = found.length > 0;
  useEffect(() => {
    if (!isAny) return;
    const timer = window.setInterval(() => setTick((old) => old + 1), TICK_MS);
    return () => {
      window.clearInterval(timer);
      setOverMs(Date.now());
      window.setTimeout(() => setOverMs(0), SAID_MS);
    };
  }, [isAny]);
  const sentences = [...new Set(found.map((one) => one.sentence))];
  const times = found.flatMap((one) => (one.asOfMs === undefined ? [] : [one.asOfMs]));
  return (
    <div class={isAny ? "troubles some" : "troubles"}>
      {isAny && (
        <div role="alert">
          {sentences.map((one) => (
            <p class="problem" key={one}>{one} {one === LOGGED_OUT && <a href={location.href}>Log in again</a>}</p>
          ))}
        </div>
      )}
      {isAny && !sentences.includes(LOGGED_OUT) && (
        <p class="note">
          {times.length > 0 && <>What you see is as of {describeTime(Math.min(...times))}. </>}
          {goesOn(found) && <>This page goes on by itself. </>}
          {isLong(found, Date.now()) && <>That is long for a start: tell an admin of the hub, who may not know. </>}
          <button type="button" class="quiet" onClick={() => found.forEach((one) => one.look())}>Look again</button>
        </p>
      )}
      <div aria-live="polite">{!isAny && isOverMs > 0 && <p class="note">Up to date again.</p>}</div>
    </div>
  );
}

/** Whether there is something to wait for: what was refused for good stays so until somebody changes something. */
export function goesOn(troubles: Trouble[]): boolean {
  return troubles.some((one) => !one.isFinal);
}

/** Whether what may come back is away for longer than anything takes to start again. */
export function isLong(troubles: Trouble[], nowMs: number): boolean {
  return troubles.some((one) => !one.isFinal && one.asOfMs !== undefined && nowMs - one.asOfMs > LONG_MS);
}

function describeTime(atMs: number): string {
  return `${showClock(atMs)}, ${showAge(Math.max(0, Date.now() - atMs))} ago`;
}
