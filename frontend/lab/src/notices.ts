/** What is worth interrupting somebody for: a cell that waited, or runs in the background, starts or ends. */

import { EndedCell, Kind, PageView, RunningCell, WaitingCell } from './view.js';

/** Who waited for less has not looked away. In milliseconds. */
const LONG_WAIT = 10_000;
/** So many answers may come before the ledger has what became of a cell. */
const PATIENCE = 4;

export interface Notice {
  /** Of whose cell it is, or the name of a decision: browsers show one notice of each. */
  lease: string;
  title: string;
  body: string;
  isWell: boolean;
}

interface Followed {
  phase: 'waiting' | 'running' | 'over';
  kind: Kind;
  title: string;
  kernel: string;
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
  /** `notebookOf` names the notebook of a kernel; empty where that is not known. */
  constructor(private readonly notebookOf: (kernel: string) => string) {}

  /** Take in an answer; say what it brings. Answers that say nothing of the pool change nothing. */
  step(view: PageView): Step {
    if (view.pool !== 'there') {
      return { notices: [], wantsEnded: this.wantsEnded };
    }
    const notices: Notice[] = [];
    for (const cell of view.waiting) {
      if (cell.kind !== 'sweep') {
        this.follow('waiting', cell, cell.waited_ms);
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
          title: `${this.name(known)} has started`,
          body: cell.place,
          isWell: true
        });
      }
      if (known !== undefined || cell.kind === 'background') {
        this.follow('running', cell, known?.waitedMs ?? 0);
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
          notices.push(this.endOf(known, result));
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

  /** What a broker that was restarted has not heard yet, was known before. */
  private follow(phase: 'waiting' | 'running', cell: WaitingCell | RunningCell, waitedMs: number): void {
    const before = this.cells.get(cell.lease);
    this.cells.set(cell.lease, {
      phase,
      kind: cell.kernel === '' ? (before?.kind ?? cell.kind) : cell.kind,
      title: cell.title || (before?.title ?? ''),
      kernel: cell.kernel || (before?.kernel ?? ''),
      waitedMs,
      asked: 0
    });
  }

  private name(cell: Followed): string {
    const what = cell.kind === 'background' ? 'Background cell' : 'Cell';
    const notebook = this.notebookOf(cell.kernel);
    const where = notebook === '' ? '' : ` in ${notebook}`;
    return (cell.title ? `${what} “${cell.title}”` : `Your ${what.toLowerCase()}`) + where;
  }

  private endOf(cell: Followed, result: EndedCell): Notice {
    const name = this.name(cell);
    return {
      lease: result.lease,
      title: result.outcome === '' ? `${name} has ended` : `${name}: ${result.outcome}`,
      body: result.sentence,
      isWell: result.is_well
    };
  }

  private readonly cells = new Map<string, Followed>();
}

function isWorthTelling(cell: Followed): boolean {
  return cell.kind === 'background' || cell.waitedMs >= LONG_WAIT;
}
