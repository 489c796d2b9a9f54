/** What was decided of what the user asked for beyond the rules: each decision is told once. */

import { Notice } from './notices.js';
import { PageView } from './view.js';

/** Follows the decisions from one answer to the next. What is there at the first answer is no news. */
export class DecisionFollower {
  /** Take in an answer; return what it brings. Answers that say nothing of the pool change nothing. */
  step(view: PageView): Notice[] {
    if (view.pool !== 'there') {
      return [];
    }
    const known = this.known;
    // An answer lists a few: what is back in it, since a later one has gone, was told before.
    this.known = new Set([...(known ?? []), ...view.decided.map(one => one.id)]);
    return view.decided
      .filter(one => known !== null && !known.has(one.id))
      .map(one => ({ lease: one.id, title: one.title, body: one.sentence, isWell: one.is_granted }));
  }

  private known: Set<string> | null = null;
}
