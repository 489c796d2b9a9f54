/** What is worth interrupting somebody for: a cell that waited, or runs in the background, starts or ends. */

import { EndedCell, Kind, PageView } from './view.js';

/** Who waited for less has not looked away. In milliseconds. */
const LONG_WAIT = 10_000;
/** So many answers may come before the ledger has what became of a cell. */
const PATIENCE = 4;

export interface Notice {
  lease: string;
  title: string;
  body: string;
  isWell: boolean;
}

interface Followed {
  phase: 'waiting' | 'running' | 'over';
  kind: Kind;
  title: string;
  waitedMs: number;
  asked: number;
}

export interface Step {
  notices: Notice[];
  /** Something is over, and what became of it is not known yet. */
  wantsEnded: boolean;
}

/** Follows the user's cells from one answer to the next. What is there at the first answer is no news. */
export class CellFollower {
  /** Take in an answer; say what it brings. Answers that say nothing of the pool change nothing. */
  step(view: PageView): Step {
    if (view.pool !== 'there') {
      return { notices: [], wantsEnded: this.wantsEnded };
    }
    const notices: Notice[] = [];
    for (const cell of view.waiting) {
      if (cell.kind !== 'sweep') {
        this.follow(cell.lease, 'waiting', cell.kind, cell.title, cell.waited_ms);
      }
    }
    const running = new Set<string>();
    for (const cell of view.running) {
      if (!cell.is_cell || cell.kind === 'sweep') {
        continue;
      }
      running.add(cell.lease);
      const known = this.cells.get(cell.lease);
      if (known?.phase === 'waiting' && known.waitedMs >= LONG_WAIT) {
        notices.push({
          lease: cell.lease,
          title: `${name(known)} has started`,
          body: cell.sentence,
          isWell: true
        });
      }
      if (known !== undefined || cell.kind === 'background') {
        this.follow(cell.lease, 'running', cell.kind, cell.title, known?.waitedMs ?? 0);
      }
    }
    const waiting = new Set(view.waiting.map(cell => cell.lease));
    const ended = new Map([...view.ended].reverse().map(cell => [cell.lease, cell])); // the last one counts
    for (const [lease, known] of this.cells) {
      if (running.has(lease) || waiting.has(lease)) {
        continue;
      }
      known.phase = 'over';
      const result = ended.get(lease);
      if (result !== undefined || (view.is_whole && ++known.asked >= PATIENCE)) {
        this.cells.delete(lease);
        if (isWorthTelling(known) && result !== undefined) {
          notices.push(endOf(known, result));
        }
      } else if (!isWorthTelling(known)) {
        this.cells.delete(lease);
      }
    }
    return { notices, wantsEnded: this.wantsEnded };
  }

  private get wantsEnded(): boolean {
    return [...this.cells.values()].some(cell => cell.phase === 'over');
  }

  private follow(
    lease: string,
    phase: 'waiting' | 'running',
    kind: Kind,
    title: string,
    waitedMs: number
  ): void {
    const before = this.cells.get(lease);
    this.cells.set(lease, { phase, kind, title: title || (before?.title ?? ''), waitedMs, asked: 0 });
  }

  private readonly cells = new Map<string, Followed>();
}

function isWorthTelling(cell: Followed): boolean {
  return cell.kind === 'background' || cell.waitedMs >= LONG_WAIT;
}

function name(cell: Followed): string {
  const what = cell.kind === 'background' ? 'Background cell' : 'Cell';
  return cell.title ? `${what} “${cell.title}”` : `Your ${what.toLowerCase()}`;
}

function endOf(cell: Followed, result: EndedCell): Notice {
  return {
    lease: result.lease,
    title: result.outcome === '' ? `${name(cell)} has ended` : `${name(cell)}: ${result.outcome}`,
    body: result.sentence,
    isWell: result.is_well
  };
}
