// When a page may go to the hub for its login again. A login that begins there leaves a cookie, whether it ends well or not.

/** Why a login is not there again: the hub does not know the reader, or something is still starting, which takes less long. */
export type Failure = "refused" | "away";

const PAUSES: Record<Failure, { firstMs: number; mostMs: number }> = {
  refused: { firstMs: 60_000, mostMs: 30 * 60_000 },
  away: { firstMs: 5_000, mostMs: 2 * 60_000 },
};
/** So soon at the earliest for who comes back to the page, perhaps from logging in elsewhere. */
const SEEN_MS = 5_000;

/** Each failure in a row makes the pause twice as long, until the login works or the page is looked at again. */
export class RenewalPace {
  private failures = 0;
  private failedAtMs = 0;
  private notBeforeMs = -Infinity;

  mayTry(nowMs: number): boolean {
    return nowMs >= this.notBeforeMs;
  }

  fail(why: Failure, nowMs: number): void {
    const { firstMs, mostMs } = PAUSES[why];
    this.failedAtMs = nowMs;
    this.notBeforeMs = nowMs + Math.min(mostMs, firstMs * 2 ** this.failures);
    this.failures += 1;
  }

  /** Note that the service has served the reader. */
  succeed(): void {
    this.failures = 0;
    this.notBeforeMs = -Infinity;
  }

  /** Note that the page is looked at again. */
  see(): void {
    this.notBeforeMs = Math.min(this.notBeforeMs, this.failedAtMs + SEEN_MS);
  }
}
