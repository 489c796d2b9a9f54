// How long until something is asked again.

const FIRST_MS = 1_500;
const MOST_MS = 30_000;

/** Say when to ask again after so many failures in a row: soon at first, then less and less often, so that whoever is
 * starting again is not asked by all at once. `random` is from 0 to 1. */
export function pauseMs(everyMs: number, failures: number, random: number): number {
  const pause = failures === 0 ? everyMs : Math.min(MOST_MS, FIRST_MS * 2 ** (failures - 1));
  return pause * (0.9 + 0.2 * random);
}
