/** What is known of the user's cells, asked of the user's own server as often as somebody looks. */

import { PageConfig, URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { ISignal, Signal } from '@lumino/signaling';

import { DecisionFollower } from './decisions.js';
import { CellFollower, Notice } from './notices.js';
import { nextAsk } from './pacing.js';
import { NOTHING, PageView } from './view.js';

/** For so long a cell that was sent off may be on its way, in milliseconds. */
const EXPECTS = 15_000;

export class PoolModel {
  /** `notebookOf` names the notebook of a kernel; empty where it is not of this server. */
  constructor(
    private readonly settings: ServerConnection.ISettings,
    notebookOf: (kernel: string) => string
  ) {
    this.follower = new CellFollower(notebookOf);
    document.addEventListener('visibilitychange', () => this.askNow());
    this.askNow();
  }

  get view(): PageView {
    return this.known;
  }

  /** Whether there is something to be shown at all. */
  get isThere(): boolean {
    return this.known.pool !== 'none';
  }

  get changed(): ISignal<this, void> {
    return this.changedSignal;
  }

  get noticed(): ISignal<this, Notice> {
    return this.noticedSignal;
  }

  set isPanelOpen(isOpen: boolean) {
    if (isOpen !== this.isOpen) {
      this.isOpen = isOpen;
      this.askNow();
    }
  }

  /** A cell was sent off that will be there in a moment. */
  expectCell(): void {
    this.expectsUntilMs = Date.now() + EXPECTS;
    this.askNow();
  }

  private get isWatched(): boolean {
    return this.isOpen || Date.now() < this.expectsUntilMs;
  }

  /** Cancel a cell; resolves to a sentence about what that did. */
  async cancel(lease: string): Promise<string> {
    const answer = await this.request('cancel', { method: 'POST', body: JSON.stringify({ lease }) });
    const said = (await answer.json()) as { sentence?: string; message?: string };
    this.askNow();
    return said.sentence ?? said.message ?? 'The server could not cancel the cell.';
  }

  askNow(): void {
    if (this.isAsking) {
      this.asksAgain = true;
      return;
    }
    window.clearTimeout(this.timer);
    if (nextAsk(this.known, document.hidden, this.isWatched, this.failures) !== null) {
      void this.ask();
    }
  }

  private async ask(): Promise<void> {
    this.isAsking = true;
    try {
      const answer = await this.request(this.isOpen || this.wantsEnded ? 'cells?whole=1' : 'cells', {});
      if (!answer.ok) {
        throw new Error(String(answer.status));
      }
      this.take((await answer.json()) as PageView);
      this.failures = 0;
    } catch {
      this.failures += 1; // the page says itself when its server is gone
    }
    this.isAsking = false;
    if (this.asksAgain) {
      this.asksAgain = false;
      void this.ask();
      return;
    }
    const waitMs = nextAsk(this.known, document.hidden, this.isWatched, this.failures);
    if (waitMs !== null) {
      this.timer = window.setTimeout(() => void this.ask(), waitMs);
    }
  }

  private take(view: PageView): void {
    // What was asked for while the panel was open stays until it is asked for again.
    this.known = view.is_whole
      ? view
      : { ...view, detached: this.known.detached, ended: this.known.ended };
    const step = this.follower.step(view);
    this.wantsEnded = step.wantsEnded;
    this.changedSignal.emit();
    [...step.notices, ...this.decisions.step(view)].forEach(notice => this.noticedSignal.emit(notice));
  }

  private request(path: string, init: RequestInit): Promise<Response> {
    const url = URLExt.join(this.settings.baseUrl || PageConfig.getBaseUrl(), 'bulletin/v1', path);
    return ServerConnection.makeRequest(url, init, this.settings);
  }

  private known: PageView = NOTHING;
  private readonly follower: CellFollower;
  private readonly decisions = new DecisionFollower();
  private wantsEnded = false;
  private isOpen = false;
  private expectsUntilMs = 0;
  private isAsking = false;
  private asksAgain = false;
  private failures = 0;
  private timer = 0;
  private readonly changedSignal = new Signal<this, void>(this);
  private readonly noticedSignal = new Signal<this, Notice>(this);
}
