/** How often the server is asked: hardly ever, but for a person who looks, or waits for something. */

import { isBusy, PageView } from './view.js';

/** In milliseconds. The server asks the pool less often than that, however many pages there are. */
export const SOON = 3_000;
export const SELDOM = 12_000;
export const HIDDEN = 20_000;
/** Where there is no pool, somebody may start one. */
export const NO_POOL = 60_000;

/**
 * When to ask next, in milliseconds; null is not before the page is seen again.
 *
 * `isWatched`: the panel is open, or a %%gpu cell was just sent off. A page that is hidden asks only while there is something to tell its user of.
 */
export function nextAsk(
  view: PageView,
  isHidden: boolean,
  isWatched: boolean,
  failures: number
): number | null {
  if (isHidden) {
    return (isBusy(view) || view.awaits_decision) && failures < 5 ? HIDDEN : null;
  }
  if (failures > 0) {
    return Math.min(NO_POOL, SELDOM * 2 ** (failures - 1));
  }
  if (view.pool === 'none') {
    return NO_POOL;
  }
  return isBusy(view) || isWatched ? SOON : SELDOM;
}
