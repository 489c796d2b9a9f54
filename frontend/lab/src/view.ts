/** What the notebook server answers about the user's cells: sentences to be shown as they are. */

export type Kind = 'front' | 'background' | 'sweep';

export interface WaitingCell {
  lease: string;
  /** Jupyter's id of the kernel of its notebook; empty where that is not known. */
  kernel: string;
  kind: Kind;
  title: string;
  sentence: string;
  brief: string;
  waited_ms: number;
}

export interface RunningCell {
  lease: string;
  kernel: string;
  kind: Kind;
  title: string;
  sentence: string;
  /** Where it runs and for how long at most: a sentence that stays true. */
  place: string;
  /** False: nothing runs there, it is kept ready for the next cell. */
  is_cell: boolean;
  /** What brings it into another notebook, once its own is gone; empty where that is of no use. */
  command: string;
}

export interface DetachedCell {
  title: string;
  sentence: string;
  command: string;
}

export interface EndedCell {
  lease: string;
  title: string;
  outcome: string;
  is_well: boolean;
  sentence: string;
  ended_at_ms: number;
}

/** What somebody decided of something that the user had asked for beyond the rules. */
export interface Decision {
  id: string;
  title: string;
  sentence: string;
  is_granted: boolean;
}

export interface PageView {
  pool: 'there' | 'away' | 'startable' | 'none';
  summary: string;
  brief: string;
  project: string;
  waiting: WaitingCell[];
  more_waiting: number;
  running: RunningCell[];
  detached: DetachedCell[];
  ended: EndedCell[];
  /** What an admin tells everybody; empty where nobody does. */
  announcement: string;
  /** What was decided of late, the latest first. */
  decided: Decision[];
  /** Whether something that the user asked for waits for a decision. */
  awaits_decision: boolean;
  /** Whether `detached` and `ended` were asked for. */
  is_whole: boolean;
}

/** What is known before the server has answered, and where it has no such extension. */
export const NOTHING: PageView = {
  pool: 'none',
  summary: '',
  brief: '',
  project: '',
  waiting: [],
  more_waiting: 0,
  running: [],
  detached: [],
  ended: [],
  announcement: '',
  decided: [],
  awaits_decision: false,
  is_whole: false
};

/** Whether a %%gpu cell of this user waits, runs or is about to. */
export function isBusy(view: PageView): boolean {
  return view.waiting.length > 0 || view.running.some(cell => cell.is_cell);
}

/** What the status bar says; empty where there is nothing to say. */
export function statusText(view: PageView): string {
  if (view.pool === 'none' || view.pool === 'startable') {
    return '';
  }
  const first = view.waiting[0];
  const running = view.running.filter(cell => cell.is_cell).length;
  const mine = [
    running > 0 ? `${running} running` : '',
    first !== undefined ? first.brief : ''
  ].filter(word => word !== '');
  return [...mine, view.brief].join(' · ');
}
