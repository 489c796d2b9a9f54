/** My cells in a side panel: what runs and waits, what lost its notebook, and what the last ones cost. */

import { ReactWidget } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { BrowserNotices } from './browserNotices.js';
import { gpuIcon } from './icon.js';
import { PoolModel } from './poolModel.js';
import { DetachedCell, EndedCell, PageView, RunningCell, WaitingCell } from './view.js';

/** What the panel needs of the page around it. */
export interface PanelHost {
  /** The path of the notebook of a kernel; empty where it is not of this server, or has ended. */
  pathOf(kernel: string): string;
  openNotebook(path: string): void;
  copy(text: string): void;
  /** Ask whether a cell that runs is to be stopped, which may be hours of work. */
  confirmStop(sentence: string): Promise<boolean>;
  say(text: string): void;
}

export class PoolPanel extends ReactWidget {
  constructor(
    private readonly pool: PoolModel,
    private readonly host: PanelHost,
    private readonly browser: BrowserNotices
  ) {
    super();
    this.id = 'bulletin-pool';
    this.title.icon = gpuIcon;
    this.title.caption = 'GPU pool: my cells';
    this.addClass('bulletin-Panel');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'GPU pool');
    this.node.tabIndex = -1;
    pool.changed.connect(this.update, this);
    browser.changed.connect(this.update, this);
  }

  /** Whoever opens it by the keyboard goes on in it: Tab leads to the first cell. */
  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.focus();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.pool.isPanelOpen = true;
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this.pool.isPanelOpen = false;
  }

  protected render(): JSX.Element {
    return <Panel view={this.pool.view} pool={this.pool} host={this.host} browser={this.browser} />;
  }
}

interface PanelProps {
  view: PageView;
  pool: PoolModel;
  host: PanelHost;
  browser: BrowserNotices;
}

function Panel({ view, pool, host, browser }: PanelProps): JSX.Element {
  if (view.pool === 'startable') {
    return (
      <div className="bulletin-Panel-body">
        <h2>GPU pool</h2>
        <p>No pool runs here. The first cell that starts with %%gpu starts one of your own.</p>
      </div>
    );
  }
  const cancel = (lease: string): void => {
    void pool.cancel(lease).then(host.say, () => host.say('The server does not answer.'));
  };
  const isIdle = view.running.length + view.waiting.length + view.detached.length === 0;
  return (
    <div className="bulletin-Panel-body">
      <h2>GPU pool</h2>
      <p role="status">{view.summary}</p>
      {view.announcement !== '' && (
        <p role="note" className="bulletin-announcement">
          {view.announcement}
        </p>
      )}
      {view.project !== '' && <p className="bulletin-quiet">{view.project}</p>}
      {view.pool === 'there' && isIdle && <p className="bulletin-quiet">No cell of yours runs or waits.</p>}
      <Section title="Running" cells={view.running.filter(cell => cell.is_cell)}>
        {cell => <Running key={cell.lease} cell={cell} host={host} cancel={cancel} />}
      </Section>
      <Section title="Waiting" cells={view.waiting}>
        {cell => <Waiting key={cell.lease} cell={cell} host={host} cancel={cancel} />}
      </Section>
      {view.more_waiting > 0 && <p className="bulletin-quiet">And {view.more_waiting} more of yours wait.</p>}
      <Section title="Kept ready" cells={view.running.filter(cell => !cell.is_cell)}>
        {cell => <Ready key={cell.lease} cell={cell} host={host} />}
      </Section>
      <Section title="Without a notebook" cells={view.detached}>
        {cell => <Detached key={cell.command} cell={cell} host={host} />}
      </Section>
      <Section title="Last cells" cells={view.ended}>
        {cell => <Ended key={`${cell.lease} ${cell.ended_at_ms}`} cell={cell} />}
      </Section>
      <Browser browser={browser} />
    </div>
  );
}

interface SectionProps<T> {
  title: string;
  cells: T[];
  children: (cell: T) => JSX.Element;
}

function Section<T>({ title, cells, children }: SectionProps<T>): JSX.Element | null {
  if (cells.length === 0) {
    return null;
  }
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <ul>{cells.map(children)}</ul>
    </section>
  );
}

interface CellProps<T> {
  cell: T;
  host: PanelHost;
  cancel: (lease: string) => void;
}

function Running({ cell, host, cancel }: CellProps<RunningCell>): JSX.Element {
  const stop = async (): Promise<void> => {
    if (await host.confirmStop(`${cell.title || KINDS[cell.kind]}: ${cell.sentence}`)) {
      cancel(cell.lease);
    }
  };
  return (
    <li className="bulletin-mod-running">
      <Head cell={cell} host={host} />
      <p>{cell.sentence}</p>
      <p className="bulletin-actions">
        <button className="jp-Button jp-mod-styled jp-mod-minimal" onClick={() => void stop()}>
          Cancel
        </button>
        {cell.command !== '' && (
          <button
            className="jp-Button jp-mod-styled jp-mod-minimal"
            title={`${cell.command}\nshows it in another notebook, once its own is gone.`}
            onClick={() => host.copy(cell.command)}
          >
            Copy attach command
          </button>
        )}
      </p>
    </li>
  );
}

function Ready({ cell, host }: { cell: RunningCell; host: PanelHost }): JSX.Element {
  return (
    <li>
      <p>{cell.sentence}</p>
      <Notebook kernel={cell.kernel} host={host} />
    </li>
  );
}

function Waiting({ cell, host, cancel }: CellProps<WaitingCell>): JSX.Element {
  return (
    <li className="bulletin-mod-waiting">
      <Head cell={cell} host={host} />
      <p>{cell.sentence}</p>
      <p className="bulletin-actions">
        <button className="jp-Button jp-mod-styled jp-mod-minimal" onClick={() => cancel(cell.lease)}>
          Cancel
        </button>
      </p>
    </li>
  );
}

interface HeadProps {
  cell: RunningCell | WaitingCell;
  host: PanelHost;
}

const KINDS = { front: 'Cell', background: 'Background cell', sweep: 'Part of --each' };

/** What the cell is called, and its notebook. */
function Head({ cell, host }: HeadProps): JSX.Element {
  const what = KINDS[cell.kind];
  return (
    <h4>
      {cell.title !== '' ? cell.title : what}
      <Notebook kernel={cell.kernel} host={host} />
      {cell.title !== '' && cell.kind !== 'front' && <span className="bulletin-quiet">{what}</span>}
    </h4>
  );
}

/** The name of a kernel's notebook; a click opens it. */
function Notebook({ kernel, host }: { kernel: string; host: PanelHost }): JSX.Element | null {
  const path = kernel === '' ? '' : host.pathOf(kernel);
  if (path === '') {
    return null;
  }
  return (
    <button className="bulletin-link" title={path} onClick={() => host.openNotebook(path)}>
      {path.slice(path.lastIndexOf('/') + 1)}
    </button>
  );
}

function Detached({ cell, host }: { cell: DetachedCell; host: PanelHost }): JSX.Element {
  return (
    <li className="bulletin-mod-detached">
      <h4>{cell.title}</h4>
      <p>{cell.sentence}</p>
      <p className="bulletin-actions">
        <code>{cell.command}</code>
        <button
          className="jp-Button jp-mod-styled jp-mod-minimal"
          title="Run it in a notebook: it shows all that the cell printed, and brings its variables there."
          onClick={() => host.copy(cell.command)}
        >
          Copy
        </button>
      </p>
    </li>
  );
}

function Ended({ cell }: { cell: EndedCell }): JSX.Element {
  const at = new Date(cell.ended_at_ms);
  const isToday = at.toDateString() === new Date().toDateString();
  const time = isToday ? at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }) : at.toLocaleDateString();
  return (
    <li className={cell.is_well ? 'bulletin-mod-well' : 'bulletin-mod-badly'}>
      <h4>
        <time dateTime={at.toISOString()}>{time}</time>
        {cell.title}
        {cell.outcome !== '' && <span className="bulletin-outcome">{cell.outcome}</span>}
      </h4>
      <p>{cell.sentence}</p>
    </li>
  );
}

function Browser({ browser }: { browser: BrowserNotices }): JSX.Element | null {
  switch (browser.state) {
    case 'impossible':
      return null;
    case 'refused':
      return <p className="bulletin-quiet">Your browser does not let this page notify you.</p>;
    default:
      return (
        <label className="bulletin-browser">
          <input
            type="checkbox"
            checked={browser.state === 'on'}
            onChange={event => void browser.choose(event.target.checked)}
          />
          Tell me in the browser, too, when a cell that waited or a background cell starts or ends
        </label>
      );
  }
}
